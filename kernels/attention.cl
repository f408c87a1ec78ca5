// Causal multi-head attention (Vaswani et al. 2017) in two kernels, with softmax.cl between them:
//
//   scores_ij = q_i . k_j / sqrt(d_head)         who listens to whom, and how much
//   shares    = causal softmax of each row       see softmax.cl
//   y_i       = sum_j shares_ij v_j              what is heard
//
// Queries, keys and values lie side by side in one row for each place:
//
//   qkv (B, T, 3C)    | q head 0 | q head 1 | k head 0 | k head 1 | v head 0 | v head 1 |
//                       0          d          C          C+d        2C         2C+d
//
// The rows first .. length-1 ask, the rows 0 .. length-1 are asked. In training first is 0 and
// length is T; with a cache, only the newest rows ask. T stays the number of rows in memory.
//
// Index names: b batch, h head, i the row that asks (counted from first), j the row that is asked,
// e the channel inside a head of d = C / H channels. Q = length - first rows ask.

// One work-item, one score.
__kernel void attention_scores(__global const float *restrict qkv,      // (B, T, 3C)
                               __global float *restrict scores,         // (B, H, Q, length)
                               const int B, const int T, const int H, const int d,
                               const int first, const int length, const float scale)
{
    const int j = get_global_id(0);
    const int line = get_global_id(1);             // (b * H + h) * Q + i
    const int Q = length - first;
    if (j >= length || line >= B * H * Q) return;
    const int i = line % Q, h = line / Q % H, b = line / Q / H;
    const int C = H * d;
    __global const float *q = qkv + (b * T + first + i) * 3 * C + h * d;
    __global const float *k = qkv + (b * T + j) * 3 * C + C + h * d;

    float sum = 0.0f;
    for (int e = 0; e < d; ++e) sum += q[e] * k[e];
    scores[line * length + j] = sum * scale;
}

// One work-item, one element of y. It sums only over j that row i may see; the other shares are 0.
__kernel void attention_mix(__global const float *restrict qkv,         // (B, T, 3C)
                            __global const float *restrict shares,      // (B, H, Q, length)
                            __global float *restrict y,                 // (B, Q, C)
                            const int B, const int T, const int H, const int d,
                            const int first, const int length)
{
    const int c = get_global_id(0);                // h * d + e
    const int place = get_global_id(1);            // b * Q + i
    const int Q = length - first, C = H * d;
    if (c >= C || place >= B * Q) return;
    const int i = place % Q, b = place / Q, h = c / d;
    __global const float *p = shares + ((b * H + h) * Q + i) * length;
    __global const float *v = qkv + b * T * 3 * C + 2 * C + c;

    float sum = 0.0f;
    for (int j = 0; j <= first + i; ++j) sum += p[j] * v[j * 3 * C];
    y[place * C + c] = sum;
}

// ---- backward, for whole sequences: first = 0, length = T ----

// dshares_ij = dy_i . v_j. One work-item, one element.
__kernel void attention_mix_backward_shares(__global const float *restrict qkv,   // (B, T, 3C)
                                            __global const float *restrict dy,    // (B, T, C)
                                            __global float *restrict dshares,     // (B, H, T, T)
                                            const int B, const int T, const int H, const int d)
{
    const int j = get_global_id(0);
    const int line = get_global_id(1);             // (b * H + h) * T + i
    if (j >= T || line >= B * H * T) return;
    const int i = line % T, h = line / T % H, b = line / T / H;
    const int C = H * d;
    __global const float *up = dy + (b * T + i) * C + h * d;
    __global const float *v = qkv + (b * T + j) * 3 * C + 2 * C + h * d;

    float sum = 0.0f;
    for (int e = 0; e < d; ++e) sum += up[e] * v[e];
    dshares[line * T + j] = sum;
}

// dv_j = sum over the rows i >= j that heard it, shares_ij dy_i. One work-item, one element of dv.
__kernel void attention_mix_backward_values(__global const float *restrict shares,  // (B, H, T, T)
                                            __global const float *restrict dy,      // (B, T, C)
                                            __global float *restrict dqkv,          // (B, T, 3C)
                                            const int B, const int T, const int H, const int d)
{
    const int c = get_global_id(0);                // h * d + e
    const int place = get_global_id(1);            // b * T + j
    const int C = H * d;
    if (c >= C || place >= B * T) return;
    const int j = place % T, b = place / T, h = c / d;
    __global const float *p = shares + (b * H + h) * T * T + j;

    float sum = 0.0f;
    for (int i = j; i < T; ++i) sum += p[i * T] * dy[(b * T + i) * C + c];
    dqkv[place * 3 * C + 2 * C + c] = sum;
}

// dq_i = scale sum_{j <= i} dscores_ij k_j    and    dk_j = scale sum_{i >= j} dscores_ij q_i.
// One work-item, one element of dq and the element of dk at the same place.
__kernel void attention_scores_backward(__global const float *restrict qkv,      // (B, T, 3C)
                                        __global const float *restrict dscores,  // (B, H, T, T)
                                        __global float *restrict dqkv,           // (B, T, 3C)
                                        const int B, const int T, const int H, const int d,
                                        const float scale)
{
    const int c = get_global_id(0);                // h * d + e
    const int place = get_global_id(1);            // b * T + t
    const int C = H * d;
    if (c >= C || place >= B * T) return;
    const int t = place % T, b = place / T, h = c / d;
    __global const float *ds = dscores + (b * H + h) * T * T;
    __global const float *q = qkv + b * T * 3 * C + c;
    __global const float *k = q + C;

    float dq = 0.0f, dk = 0.0f;
    for (int j = 0; j <= t; ++j) dq += ds[t * T + j] * k[j * 3 * C];
    for (int i = t; i < T; ++i) dk += ds[i * T + t] * q[i * 3 * C];
    dqkv[place * 3 * C + c] = dq * scale;
    dqkv[place * 3 * C + C + c] = dk * scale;
}
