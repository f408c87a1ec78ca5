// Softmax for a GPU: a group owns a row. Formulas and masks as in softmax.cl.
//
// The ideas: the items of a group take turns along the row, so neighbours read neighbouring addresses,
// where items with a row each read n numbers apart; and the largest score and the sum are found by
// halves, log2(size) additions one after the other in place of n. Training does not pass here: fused
// attention and cross-entropy have their own softmax inside.
#define MOST 256                                   // items of a group, at most

// The sum of one number from each item of the group, given to all; right for any group of up to
// MOST items. The halves are always added in the same order.
float group_sum(const float x, __local float *part)
{
    const int id = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);                  // what was there has been read
    part[id] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = get_local_size(0); n > 1; n = (n + 1) / 2) {
        if (id + (n + 1) / 2 < n) part[id] += part[id + (n + 1) / 2];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return part[0];
}

float group_max(const float x, __local float *part)
{
    const int id = get_local_id(0);
    // A row begins with this: nobody reads part yet, so nobody has to be waited for.
    part[id] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = get_local_size(0); n > 1; n = (n + 1) / 2) {
        if (id + (n + 1) / 2 < n) part[id] = fmax(part[id], part[id + (n + 1) / 2]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return part[0];
}

// One row: the first `seen` columns get shares, the others 0.
void share_row(__global const float *in, __global float *out, const int seen, const int n,
               __local float *part)
{
    const int id = get_local_id(0), size = get_local_size(0);
    float most = -INFINITY;
    for (int j = id; j < seen; j += size) most = fmax(most, in[j]);
    const float largest = group_max(most, part);

    float sum = 0.0f;
    for (int j = id; j < seen; j += size) {
        const float e = exp(in[j] - largest);
        out[j] = e;
        sum += e;
    }
    const float total = group_sum(sum, part);
    for (int j = id; j < n; j += size) out[j] = j < seen ? out[j] / total : 0.0f;
}

// One group, one row; every column counts.
__kernel void softmax_forward_group(__global const float *restrict scores,   // (rows, n)
                                    __global float *restrict shares,         // (rows, n)
                                    const int rows, const int n)
{
    __local float part[MOST];
    const int row = get_group_id(0);
    if (row >= rows) return;
    share_row(scores + row * n, shares + row * n, n, n, part);
}

// One group, one row; row i of a sequence sees columns 0 .. first + i.
__kernel void softmax_causal_group(__global const float *restrict scores,    // (sequences, T, n)
                                   __global float *restrict shares,          // (sequences, T, n)
                                   const int rows, const int T, const int n, const int first)
{
    __local float part[MOST];
    const int row = get_group_id(0);
    if (row >= rows) return;
    share_row(scores + row * n, shares + row * n, first + row % T + 1, n, part);
}

// One group, one row.
__kernel void softmax_backward_group(__global const float *restrict shares,   // (rows, n)
                                     __global const float *restrict dshares,  // (rows, n)
                                     __global float *restrict dscores,        // (rows, n)
                                     const int rows, const int n)
{
    __local float part[MOST];
    const int row = get_group_id(0), id = get_local_id(0), size = get_local_size(0);
    if (row >= rows) return;
    __global const float *p = shares + row * n;
    __global const float *dp = dshares + row * n;
    float sum = 0.0f;
    for (int j = id; j < n; j += size) sum += p[j] * dp[j];
    const float dot = group_sum(sum, part);
    for (int j = id; j < n; j += size) dscores[row * n + j] = p[j] * (dp[j] - dot);
}
