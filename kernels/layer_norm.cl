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
//
// The ladder: first one work-item for one row, the formulas as they stand; then the same with eight
// channels at a time (_wide), which a CPU does in the time of one.

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

// ---- eight channels at a time ----

typedef float8 float8u __attribute__((aligned(4)));      // may start at any float
#define LOAD8(p) (*(__global const float8u *)(p))
#define STORE8(p, value) (*(__global float8u *)(p) = (value))

float sum8(float8 x)
{
    const float4 a = x.lo + x.hi;
    return (a.x + a.z) + (a.y + a.w);
}

// The hint says that the work is in vectors already: without it Intel's compiler packs work-items too.
__attribute__((vec_type_hint(float8)))
__kernel void layer_norm_forward_wide(__global const float *restrict x,      // (rows, C)
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
    const int whole = C / 8 * 8;                   // the channels that fill vectors

    float8 sums = 0.0f;
    for (int c = 0; c < whole; c += 8) sums += LOAD8(in + c);
    float sum = sum8(sums);
    for (int c = whole; c < C; ++c) sum += in[c];
    const float m = sum / C;

    float8 squares = 0.0f;
    for (int c = 0; c < whole; c += 8) {
        const float8 d = LOAD8(in + c) - m;
        squares += d * d;
    }
    float square = sum8(squares);
    for (int c = whole; c < C; ++c) square += (in[c] - m) * (in[c] - m);
    const float r = 1.0f / sqrt(square / C + epsilon);

    for (int c = 0; c < whole; c += 8)
        STORE8(out + c, (LOAD8(in + c) - m) * r * LOAD8(gamma + c) + LOAD8(beta + c));
    for (int c = whole; c < C; ++c) out[c] = (in[c] - m) * r * gamma[c] + beta[c];
    mean[row] = m;
    rstd[row] = r;
}

__attribute__((vec_type_hint(float8)))
__kernel void layer_norm_backward_input_wide(__global const float *restrict x,      // (rows, C)
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
    __global float *out = dx + row * C;
    const float m = mean[row], r = rstd[row];
    const int whole = C / 8 * 8;

    float8 g_sums = 0.0f, gx_sums = 0.0f;
    for (int c = 0; c < whole; c += 8) {
        const float8 g = LOAD8(gamma + c) * LOAD8(up + c);
        g_sums += g;
        gx_sums += g * (LOAD8(in + c) - m) * r;
    }
    float g_sum = sum8(g_sums), gx_sum = sum8(gx_sums);
    for (int c = whole; c < C; ++c) {
        g_sum += gamma[c] * up[c];
        gx_sum += gamma[c] * up[c] * (in[c] - m) * r;
    }
    const float g_mean = g_sum / C, gx_mean = gx_sum / C;

    for (int c = 0; c < whole; c += 8) {
        const float8 xhat = (LOAD8(in + c) - m) * r;
        STORE8(out + c, r * (LOAD8(gamma + c) * LOAD8(up + c) - g_mean - xhat * gx_mean));
    }
    for (int c = whole; c < C; ++c)
        out[c] = r * (gamma[c] * up[c] - g_mean - (in[c] - m) * r * gx_mean);
}

// One work-item, eight channels: it adds down the rows. Fewer than eight go one by one.
__attribute__((vec_type_hint(float8)))
__kernel void layer_norm_backward_parameters_wide(__global const float *restrict x,     // (rows, C)
                                                  __global const float *restrict mean,  // (rows)
                                                  __global const float *restrict rstd,  // (rows)
                                                  __global const float *restrict dy,    // (rows, C)
                                                  __global float *restrict dgamma,  // (C), added to
                                                  __global float *restrict dbeta,   // (C), added to
                                                  const int rows, const int C)
{
    const int c0 = get_global_id(0) * 8;
    if (c0 >= C) return;
    if (c0 + 8 <= C) {
        float8 gamma_sum = 0.0f, beta_sum = 0.0f;
        for (int row = 0; row < rows; ++row) {
            const float8 up = LOAD8(dy + row * C + c0);
            gamma_sum += up * (LOAD8(x + row * C + c0) - mean[row]) * rstd[row];
            beta_sum += up;
        }
        STORE8(dgamma + c0, LOAD8(dgamma + c0) + gamma_sum);
        STORE8(dbeta + c0, LOAD8(dbeta + c0) + beta_sum);
        return;
    }
    for (int c = c0; c < C; ++c) {
        float gamma_sum = 0.0f, beta_sum = 0.0f;
        for (int row = 0; row < rows; ++row) {
            gamma_sum += dy[row * C + c] * (x[row * C + c] - mean[row]) * rstd[row];
            beta_sum += dy[row * C + c];
        }
        dgamma[c] += gamma_sum;
        dbeta[c] += beta_sum;
    }
}
