// The length of the whole gradient, all tensors together, and what to do about it:
//
//   norm = sqrt( sum g^2 )       clip = max_norm / norm where norm > max_norm, else 1
//
// Clipping each tensor by itself would turn the direction of the step; one norm for all keeps it.
//
// Two stages. In the first, every group of work-items adds up the squares of its own stretch of g and
// leaves one partial sum; in the second, a single work-item adds the partial sums in their order.
//
//   g        | group 0: 0 1 2 3 4 ...      | group 1: ...      a stretch is n / groups, rounded up
//              item 0 takes 0, L, 2L, ... of it, item 1 takes 1, L + 1, ...     (L items in a group)
//   scratch  [ one number for each work-item of the group ]  -> halved again and again -> 1 number

// The tree works for any group size: the upper half, rounded up, is folded onto the lower.
// A GPU wants many groups: 124 million numbers take 11.5 ms by 32 groups of 128 on an NVIDIA H200, and
// 0.205 ms by 8 groups of 256 for each of its 132 compute units.
__kernel void sum_squares_groups(__global const float *restrict g,        // (n)
                                 __global float *restrict partial,        // (all partial sums)
                                 __local float *scratch,                  // (group size)
                                 const int offset,                        // where ours start
                                 const int n)
{
    const int local_id = get_local_id(0), groups = get_num_groups(0);
    const int stretch = n / groups + (n % groups != 0), start = get_group_id(0) * stretch;
    float sum = 0.0f;
    for (int i = local_id; i < stretch && start + i < n; i += get_local_size(0))
        sum += g[start + i] * g[start + i];
    scratch[local_id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0); width > 1; width = (width + 1) / 2) {
        const int half_up = (width + 1) / 2;
        if (local_id < width / 2) scratch[local_id] += scratch[local_id + half_up];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (local_id == 0) partial[offset + get_group_id(0)] = scratch[0];
}

// The first stage for a CPU: one work-item for one stretch, eight numbers at a time.
typedef float8 float8u __attribute__((aligned(4)));      // may start at any float

__kernel void sum_squares_wide(__global const float *restrict g,          // (n)
                               __global float *restrict partial,          // (all partial sums)
                               const int offset, const int stretches, const int n)
{
    const int s = get_global_id(0);
    if (s >= stretches) return;
    const int stretch = n / stretches + (n % stretches != 0);
    const int start = min(s * stretch, n), end = min(start + stretch, n);
    float8 sums = 0.0f;
    int i = start;
    for (; i + 8 <= end; i += 8) {
        const float8 x = *(__global const float8u *)(g + i);
        sums += x * x;
    }
    const float4 halves = sums.lo + sums.hi;
    float sum = (halves.x + halves.z) + (halves.y + halves.w);
    for (; i < end; ++i) sum += g[i] * g[i];
    partial[offset + s] = sum;
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
