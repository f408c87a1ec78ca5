// The length of the whole gradient, all tensors together, and what to do about it:
//
//   norm = sqrt( sum g^2 )       clip = max_norm / norm where norm > max_norm, else 1
//
// Clipping each tensor by itself would turn the direction of the step; one norm for all keeps it.
//
// Two stages. In the first, every group of work-items adds up a share of the squares and leaves one
// partial sum; in the second, a single work-item adds the partial sums in their order.
//
//   g        0 1 2 3 4 5 6 7 8 ...     item 0 takes 0, items, 2 items, ...   (items = all work-items)
//   scratch  [ one number for each work-item of the group ]  -> halved again and again -> 1 number

// The tree works for any group size: the upper half, rounded up, is folded onto the lower.
__kernel void sum_squares_groups(__global const float *restrict g,        // (n)
                                 __global float *restrict partial,        // (all partial sums)
                                 __local float *scratch,                  // (group size)
                                 const int offset,                        // where ours start
                                 const int n)
{
    const int item = get_global_id(0), local_id = get_local_id(0);
    float sum = 0.0f;
    for (int i = item; i < n; i += get_global_size(0)) sum += g[i] * g[i];
    scratch[local_id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) {
        const int half_up = (width + 1) / 2;
        if (local_id < width / 2) scratch[local_id] += scratch[local_id + half_up];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (local_id == 0) partial[offset + get_group_id(0)] = scratch[0];
}

// status = [norm, clip, finite, loss, bad step]. finite is 1 when both the loss and the norm are
// numbers, now and in all steps before (`before` is the last status, or NULL); bad step is the first
// one that was not, or 0. So a fault stops every later update until the host looks, and is not missed.
__kernel void global_norm_status(__global const float *restrict partial,  // (count)
                                 __global const float *restrict loss,     // (1)
                                 __global const float *restrict before,   // (5) or NULL
                                 __global float *restrict status,         // (5)
                                 const int count, const float max_norm, const int step)
{
    if (get_global_id(0) > 0) return;
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) sum += partial[i];
    const float norm = sqrt(sum);
    float bad_step = before ? before[4] : 0.0f;
    if (bad_step == 0.0f && !(isfinite(norm) && isfinite(loss[0]))) bad_step = step;
    status[0] = norm;
    status[1] = norm > max_norm ? max_norm / norm : 1.0f;
    status[2] = bad_step == 0.0f ? 1.0f : 0.0f;
    status[3] = loss[0];
    status[4] = bad_step;
}

// The partial sums of one tensor, added up in their order.
__kernel void sum_partials(__global const float *restrict partial,        // (count)
                           __global float *restrict total,                // (1)
                           const int count)
{
    if (get_global_id(0) > 0) return;
    float sum = 0.0f;
    for (int i = 0; i < count; ++i) sum += partial[i];
    total[0] = sum;
}
