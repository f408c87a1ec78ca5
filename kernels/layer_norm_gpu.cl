// Layer normalization for a GPU: a group owns a row, its items take turns along it, so neighbours
// read neighbouring addresses. Formulas as in layer_norm.cl.
//
// The ideas, and microseconds for 4096 rows of 768 on an NVIDIA H200 (PyTorch: 19 forward, 109 back):
//   a group a row    forward 12.6, backward to the input 12.5, with groups of 64. A group of 256 has
//                    three numbers an item and waits at barriers: 26.2 and 27.9
//   columns in fours the parameters' gradients go down the columns: groups of 4 columns by 64 items
//                    22.7, by 8 x 32 29.3: there must be enough groups for the whole device
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

// One group, one row.
__kernel void layer_norm_forward_group(__global const float *restrict x,      // (rows, C)
                                       __global const float *restrict gamma,  // (C)
                                       __global const float *restrict beta,   // (C)
                                       __global float *restrict y,            // (rows, C)
                                       __global float *restrict mean,         // (rows)
                                       __global float *restrict rstd,         // (rows)
                                       const int rows, const int C, const float epsilon)
{
    __local float part[MOST];
    const int row = get_group_id(0), id = get_local_id(0), size = get_local_size(0);
    if (row >= rows) return;
    __global const float *in = x + row * C;

    float sum = 0.0f;
    for (int c = id; c < C; c += size) sum += in[c];
    const float m = group_sum(sum, part) / C;

    float squares = 0.0f;
    for (int c = id; c < C; c += size) squares += (in[c] - m) * (in[c] - m);
    const float r = 1.0f / sqrt(group_sum(squares, part) / C + epsilon);

    for (int c = id; c < C; c += size) y[row * C + c] = (in[c] - m) * r * gamma[c] + beta[c];
    if (id == 0) {
        mean[row] = m;
        rstd[row] = r;
    }
}

// One group, one row of dx.
__kernel void layer_norm_backward_input_group(__global const float *restrict x,      // (rows, C)
                                              __global const float *restrict gamma,  // (C)
                                              __global const float *restrict mean,   // (rows)
                                              __global const float *restrict rstd,   // (rows)
                                              __global const float *restrict dy,     // (rows, C)
                                              __global float *restrict dx,           // (rows, C)
                                              const int rows, const int C)
{
    __local float part[MOST];
    const int row = get_group_id(0), id = get_local_id(0), size = get_local_size(0);
    if (row >= rows) return;
    __global const float *in = x + row * C;
    __global const float *up = dy + row * C;
    const float m = mean[row], r = rstd[row];

    float g_sum = 0.0f, gx_sum = 0.0f;
    for (int c = id; c < C; c += size) {
        const float g = gamma[c] * up[c];
        g_sum += g;
        gx_sum += g * (in[c] - m) * r;
    }
    const float g_mean = group_sum(g_sum, part) / C, gx_mean = group_sum(gx_sum, part) / C;

    for (int c = id; c < C; c += size)
        dx[row * C + c] = r * (gamma[c] * up[c] - g_mean - (in[c] - m) * r * gx_mean);
}

// One group, as many columns as it is wide (id 0); its height (id 1) shares the rows. Items below
// each other add their sums in a fixed order. The gradients are added to what is there.
__kernel void layer_norm_backward_parameters_group(__global const float *restrict x,     // (rows, C)
                                                   __global const float *restrict mean,  // (rows)
                                                   __global const float *restrict rstd,  // (rows)
                                                   __global const float *restrict dy,    // (rows, C)
                                                   __global float *restrict dgamma,      // (C), added to
                                                   __global float *restrict dbeta,       // (C), added to
                                                   const int rows, const int C)
{
    __local float gamma_part[MOST], beta_part[MOST];
    const int c = get_global_id(0), y = get_local_id(1), wide = get_local_size(0);
    const int at = y * wide + get_local_id(0);
    float gamma_sum = 0.0f, beta_sum = 0.0f;
    if (c < C)
#pragma unroll 8
        for (int row = y; row < rows; row += get_local_size(1)) {
            const float up = dy[row * C + c];
            gamma_sum += up * (x[row * C + c] - mean[row]) * rstd[row];
            beta_sum += up;
        }
    gamma_part[at] = gamma_sum;
    beta_part[at] = beta_sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = get_local_size(1); n > 1; n = (n + 1) / 2) {
        const int half_way = (n + 1) / 2;
        if (y + half_way < n) {
            gamma_part[at] += gamma_part[at + half_way * wide];
            beta_part[at] += beta_part[at + half_way * wide];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (c < C && y == 0) {
        dgamma[c] += gamma_part[at];
        dbeta[c] += beta_part[at];
    }
}
