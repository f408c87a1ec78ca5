// Layer normalization (Ba, Kiros and Hinton 2016): each row is moved to mean 0 and variance 1,
// then stretched by gamma and shifted by beta, which are learned.
//
//   mean = sum x / C          rstd = 1 / sqrt( sum (x - mean)^2 / C + epsilon )
//   xhat = (x - mean) rstd    y = gamma xhat + beta
//
// The variance is divided by C, not C - 1, and epsilon stands inside the root. Two passes over the
// row: the short cut  mean of squares - square of mean  loses all digits when the mean is large.
//
// Backward, with g = gamma dy:
//   dx = rstd ( g - mean(g) - xhat mean(g xhat) )     dgamma = sum dy xhat     dbeta = sum dy
//
// Index names: row is one place (batch and time), c is the channel; x lies (rows, C).

// One work-item, one row.
__kernel void layer_norm_forward(__global const float *restrict x,      // (rows, C)
                                 __global const float *restrict gamma,  // (C)
                                 __global const float *restrict beta,   // (C)
                                 __global float *restrict y,            // (rows, C)
                                 __global float *restrict mean,         // (rows)
                                 __global float *restrict rstd,         // (rows)
                                 const int rows, const int C, const float epsilon)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *in = x + row * C;
    __global float *out = y + row * C;

    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum += in[c];
    const float m = sum / C;

    float squares = 0.0f;
    for (int c = 0; c < C; ++c) {
        const float d = in[c] - m;
        squares += d * d;
    }
    const float r = 1.0f / sqrt(squares / C + epsilon);

    for (int c = 0; c < C; ++c) out[c] = (in[c] - m) * r * gamma[c] + beta[c];
    mean[row] = m;
    rstd[row] = r;
}

// One work-item, one row of dx.
__kernel void layer_norm_backward_input(__global const float *restrict x,      // (rows, C)
                                        __global const float *restrict gamma,  // (C)
                                        __global const float *restrict mean,   // (rows)
                                        __global const float *restrict rstd,   // (rows)
                                        __global const float *restrict dy,     // (rows, C)
                                        __global float *restrict dx,           // (rows, C)
                                        const int rows, const int C)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *in = x + row * C;
    __global const float *up = dy + row * C;
    const float m = mean[row], r = rstd[row];

    float g_sum = 0.0f, gx_sum = 0.0f;
    for (int c = 0; c < C; ++c) {
        const float g = gamma[c] * up[c];
        g_sum += g;
        gx_sum += g * (in[c] - m) * r;
    }
    const float g_mean = g_sum / C, gx_mean = gx_sum / C;

    for (int c = 0; c < C; ++c) {
        const float xhat = (in[c] - m) * r;
        dx[row * C + c] = r * (gamma[c] * up[c] - g_mean - xhat * gx_mean);
    }
}

// One work-item, one channel: it adds down the rows. The gradients are added to what is there.
__kernel void layer_norm_backward_parameters(__global const float *restrict x,     // (rows, C)
                                             __global const float *restrict mean,  // (rows)
                                             __global const float *restrict rstd,  // (rows)
                                             __global const float *restrict dy,    // (rows, C)
                                             __global float *restrict dgamma,      // (C), added to
                                             __global float *restrict dbeta,       // (C), added to
                                             const int rows, const int C)
{
    const int c = get_global_id(0);
    if (c >= C) return;
    float gamma_sum = 0.0f, beta_sum = 0.0f;
    for (int row = 0; row < rows; ++row) {
        const float up = dy[row * C + c];
        gamma_sum += up * (x[row * C + c] - mean[row]) * rstd[row];
        beta_sum += up;
    }
    dgamma[c] += gamma_sum;
    dbeta[c] += beta_sum;
}
