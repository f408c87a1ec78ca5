// Causal multi-head attention in one kernel, which never stores the T x T table of shares.
//
// attention.cl writes all scores, reads them, writes all shares and reads them again. Here a few rows
// of queries walk along the keys once and keep three things: the largest score so far, the sum of
// exponentials so far, and the sum of weighted values so far. When a larger score appears, both sums
// are scaled down to it (online softmax: Milakov and Gimelshein 2018; Dao et al. 2022):
//
//   keys        0 1 2 3 4 5 6 7 | 8 9 ...        a block of keys at a time
//   largest'  = max(largest, scores)      shrink = exp(largest - largest')
//   total'    = total shrink + sum exp(score - largest')
//   heard'    = heard shrink + sum exp(score - largest') v          y = heard / total at the end
//
// What backward needs of all this is one number a row: log_sum = largest + log(total). With it every
// share is computed again: share_ij = exp(score_ij - log_sum_i). Let delta_i = dy_i . y_i; then
//
//   dscore_ij = share_ij (dy_i . v_j - delta_i)        dq_i = scale sum_j dscore_ij k_j
//   dv_j = sum_i share_ij dy_i                         dk_j = scale sum_i dscore_ij q_i
//
// qkv (B, T, 3C) and the rows `first` .. `length` are as in attention.cl; log_sum lies (B, H, Q).
// One work-item takes LANES rows at once, one in each lane of a vector, so a sum over the head's
// channels needs no sum across a vector. This is the version for CPUs.
//
// Index names: i the row that asks, j the row that is asked, e the channel inside the head, l a lane.

#ifndef D_HEAD
#define D_HEAD 32
#endif
#define LANES 8
#define KEYS 8                                    // rows of the other side taken in one go

typedef float8 lanes;
typedef float8 lanes_u __attribute__((aligned(4)));
#define NUMBERS ((lanes)(0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f))

// LANES rows of D_HEAD numbers, turned so that each channel's LANES numbers lie side by side. Rows
// past `last` repeat it.
void load_lanes(__global const float *x, const int stride, const int row0, const int last,
                const float scale, lanes *out)
{
    float turned[D_HEAD * LANES];
    for (int l = 0; l < LANES; ++l) {
        __global const float *row = x + min(row0 + l, last) * stride;
        for (int e = 0; e < D_HEAD; ++e) turned[e * LANES + l] = row[e] * scale;
    }
    for (int e = 0; e < D_HEAD; ++e) out[e] = *(lanes_u *)(turned + e * LANES);
}

// The reverse: each lane's numbers back to its own row; rows past `last` are not there.
void store_lanes(__global float *x, const int stride, const int row0, const int last,
                 const lanes scale, const lanes *in)
{
    float turned[D_HEAD * LANES];
    for (int e = 0; e < D_HEAD; ++e) *(lanes_u *)(turned + e * LANES) = in[e] * scale;
    for (int l = 0; l < LANES && row0 + l <= last; ++l)
        for (int e = 0; e < D_HEAD; ++e) x[(row0 + l) * stride + e] = turned[e * LANES + l];
}

// products[n] = lanes . row n of x, for KEYS rows from row0 on; rows past `last` repeat it.
void multiply_rows(const lanes *q, __global const float *x, const int stride, const int row0,
                   const int last, lanes *products)
{
    __global const float *row[KEYS];
#pragma unroll
    for (int n = 0; n < KEYS; ++n) {
        row[n] = x + min(row0 + n, last) * stride;
        products[n] = 0.0f;
    }
    for (int e = 0; e < D_HEAD; ++e) {
#pragma unroll
        for (int n = 0; n < KEYS; ++n) products[n] += q[e] * row[n][e];
    }
}

// sums[e] += sum over n of factors[n] x[row0 + n][e].
void add_rows(lanes *sums, const lanes *factors, __global const float *x, const int stride,
              const int row0, const int last)
{
    __global const float *row[KEYS];
#pragma unroll
    for (int n = 0; n < KEYS; ++n) row[n] = x + min(row0 + n, last) * stride;
    for (int e = 0; e < D_HEAD; ++e) {
        lanes sum = sums[e];
#pragma unroll
        for (int n = 0; n < KEYS; ++n) sum += factors[n] * row[n][e];
        sums[e] = sum;
    }
}

// One work-item, LANES rows that ask, of one head.
__kernel void fused_attention_forward(__global const float *restrict qkv,      // (B, T, 3C)
                                      __global float *restrict y,              // (B, Q, C)
                                      __global float *restrict log_sum,        // (B, H, Q)
                                      const int B, const int T, const int H,
                                      const int first, const int length, const float scale)
{
    const int i0 = get_global_id(0) * LANES;
    const int head = get_global_id(1);             // b * H + h
    const int Q = length - first, C = H * D_HEAD, width = 3 * C;
    if (i0 >= Q || head >= B * H) return;
    const int b = head / H, h = head % H;
    __global const float *q = qkv + (b * T + first) * width + h * D_HEAD;
    __global const float *k = qkv + b * T * width + C + h * D_HEAD;
    __global const float *v = k + C;
    const lanes row = NUMBERS + (float)(first + i0);  // exact: rows stay far below 2^24

    lanes ask[D_HEAD], heard[D_HEAD];
    load_lanes(q, width, i0, Q - 1, scale, ask);
    for (int e = 0; e < D_HEAD; ++e) heard[e] = 0.0f;
    lanes largest = -INFINITY, total = 0.0f;

    for (int j0 = 0; j0 <= min(first + i0 + LANES, length) - 1; j0 += KEYS) {
        lanes score[KEYS];
        multiply_rows(ask, k, width, j0, length - 1, score);
        lanes larger = largest;
#pragma unroll
        for (int n = 0; n < KEYS; ++n) {           // row i sees j <= i
            score[n] = (float)(j0 + n) > row ? (lanes)(-INFINITY) : score[n];
            larger = fmax(larger, score[n]);
        }
        const lanes shrink = exp(largest - larger);
        largest = larger;
        total *= shrink;
#pragma unroll
        for (int n = 0; n < KEYS; ++n) {
            score[n] = exp(score[n] - largest);
            total += score[n];
        }
        for (int e = 0; e < D_HEAD; ++e) heard[e] *= shrink;
        add_rows(heard, score, v, width, j0, length - 1);
    }
    store_lanes(y + b * Q * C + h * D_HEAD, C, i0, Q - 1, 1.0f / total, heard);
    const lanes sums = largest + log(total);
    float out[LANES];
    *(lanes_u *)out = sums;
    for (int l = 0; l < LANES && i0 + l < Q; ++l) log_sum[head * Q + i0 + l] = out[l];
}

// One work-item, LANES rows of dq, and their delta, which the other kernel needs.
__kernel void fused_attention_backward_q(__global const float *restrict qkv,       // (B, T, 3C)
                                         __global const float *restrict y,         // (B, T, C)
                                         __global const float *restrict log_sum,   // (B, H, T)
                                         __global const float *restrict dy,        // (B, T, C)
                                         __global float *restrict dqkv,            // (B, T, 3C)
                                         __global float *restrict delta,           // (B, H, T)
                                         const int B, const int T, const int H, const float scale)
{
    const int i0 = get_global_id(0) * LANES;
    const int head = get_global_id(1);             // b * H + h
    const int C = H * D_HEAD, width = 3 * C;
    if (i0 >= T || head >= B * H) return;
    const int b = head / H, h = head % H;
    __global const float *q = qkv + b * T * width + h * D_HEAD, *k = q + C, *v = k + C;
    const int from = b * T * C + h * D_HEAD;
    const lanes row = NUMBERS + (float)i0;

    lanes ask[D_HEAD], up[D_HEAD], dq[D_HEAD];
    load_lanes(y + from, C, i0, T - 1, 1.0f, ask);
    load_lanes(dy + from, C, i0, T - 1, 1.0f, up);
    lanes dot = 0.0f;
    for (int e = 0; e < D_HEAD; ++e) dot += up[e] * ask[e];
    load_lanes(q, width, i0, T - 1, scale, ask);
    float sums[LANES], out[LANES];
    for (int l = 0; l < LANES; ++l) sums[l] = log_sum[head * T + min(i0 + l, T - 1)];
    const lanes logs = *(lanes_u *)sums;
    for (int e = 0; e < D_HEAD; ++e) dq[e] = 0.0f;

    for (int j0 = 0; j0 < min(i0 + LANES, T); j0 += KEYS) {
        lanes share[KEYS], dshare[KEYS];
        multiply_rows(ask, k, width, j0, T - 1, share);
        multiply_rows(up, v, width, j0, T - 1, dshare);
#pragma unroll
        for (int n = 0; n < KEYS; ++n) {
            const lanes seen = (float)(j0 + n) > row ? (lanes)(-INFINITY) : share[n];
            share[n] = exp(seen - logs) * (dshare[n] - dot);
        }
        add_rows(dq, share, k, width, j0, T - 1);
    }
    store_lanes(dqkv + b * T * width + h * D_HEAD, width, i0, T - 1, scale, dq);
    *(lanes_u *)out = dot;
    for (int l = 0; l < LANES && i0 + l < T; ++l) delta[head * T + i0 + l] = out[l];
}

// One work-item, LANES rows of dk and dv: the rows that are asked, in the lanes; it walks along the
// rows that may ask them.
__kernel void fused_attention_backward_kv(__global const float *restrict qkv,      // (B, T, 3C)
                                          __global const float *restrict log_sum,  // (B, H, T)
                                          __global const float *restrict dy,       // (B, T, C)
                                          __global const float *restrict delta,    // (B, H, T)
                                          __global float *restrict dqkv,           // (B, T, 3C)
                                          const int B, const int T, const int H, const float scale)
{
    const int j0 = get_global_id(0) * LANES;
    const int head = get_global_id(1);             // b * H + h
    const int C = H * D_HEAD, width = 3 * C;
    if (j0 >= T || head >= B * H) return;
    const int b = head / H, h = head % H;
    __global const float *q = qkv + b * T * width + h * D_HEAD, *k = q + C, *v = k + C;
    __global const float *up = dy + b * T * C + h * D_HEAD;
    const lanes row = NUMBERS + (float)j0;

    lanes key[D_HEAD], value[D_HEAD], dk[D_HEAD], dv[D_HEAD];
    load_lanes(k, width, j0, T - 1, scale, key);
    load_lanes(v, width, j0, T - 1, 1.0f, value);
    for (int e = 0; e < D_HEAD; ++e) dk[e] = dv[e] = 0.0f;

    for (int i0 = j0; i0 < T; i0 += KEYS) {
        lanes share[KEYS], dshare[KEYS];
        multiply_rows(key, q, width, i0, T - 1, share);
        multiply_rows(value, up, C, i0, T - 1, dshare);
#pragma unroll
        for (int n = 0; n < KEYS; ++n) {
            const int i = i0 + n, at = head * T + min(i, T - 1);
            // Rows past the end ask nothing, and row i sees j <= i.
            const lanes hidden = i < T ? row : (lanes)(INFINITY);
            share[n] = exp(hidden > (float)i ? (lanes)(-INFINITY) : share[n] - log_sum[at]);
            dshare[n] = share[n] * (dshare[n] - delta[at]);
        }
        add_rows(dv, share, up, C, i0, T - 1);
        add_rows(dk, dshare, q, width, i0, T - 1);
    }
    __global float *out = dqkv + b * T * width + C + h * D_HEAD;
    store_lanes(out, width, j0, T - 1, scale, dk);
    store_lanes(out + C, width, j0, T - 1, 1.0f, dv);
}
