// Causal attention for a GPU in one pass, forward and backward; the T x T matrix is never stored.
// (Dao et al. 2022, FlashAttention; the running softmax is Milakov and Gimelshein 2018.)
//
//   forward    y_i = sum_j p_ij v_j,   p_ij = exp(s_ij - log_sum_i),   s_ij = scale q_i . k_j,  j <= i
//   backward   delta_i = sum_e dy_ie y_ie                 (which is sum_j p_ij dp_ij)
//              ds_ij = p_ij (dy_i . v_j - delta_i)
//              dq_i = scale sum_j ds_ij k_j    dk_j = scale sum_i ds_ij q_i    dv_j = sum_i p_ij dy_i
//
// A group owns TILE rows (queries; keys for dk and dv) of one head and walks over the others, TILE at
// a time. Every product of two tiles is done as in matmul.cl: the operands pass through local memory
// DEPTH at a time, laid [depth][row], and an item keeps R x S results in registers:
//
//   x = 0 .. ITEMS_X-1 across        scores  TILE x TILE: item (y, x) owns R rows, S columns
//   y = 0 .. TILE/R-1 down           y, dq.. TILE x D:    the same R rows, E columns
//
// What it gained on an NVIDIA H200, batch 4, T 1024, 12 heads of 64 (microseconds: forward, dq, dk and
// dv; PyTorch's fused attention in float32 takes 297 forward and 721 backward):
//
//   registers   260, 427, 812. 8 x 8 scores an item, as in the product of matrices
//   fewer       230, 353, 538. 4 x 8 scores, so twice the items: dk and dv need two sums at once, and
//               with 8 x 8 scores their registers spilled into memory
//   taller      235, 346, 442. 8 x 4 scores
//   inside      232, 363, 445. dq's kernel computes delta too (12 us and a launch of its own before)
//   depth       16 channels at a time: 8 take 270 forward, and 32 leave room for fewer groups: 249.
//               Heads of 128 channels have no room for more than 8
//   short       T of 32 and less: tiles of 32 rows, or half of the items had nothing to do
//               (for T 1024 such tiles are slower: 277, 428, 542)
//
// An item's rows and columns lie in strips of four. The row sums of softmax go over the items of one
// y: each writes its part into local memory, all read all.
//
//   qkv (B, T, 3C)   | q head 0 | q head 1 | k head 0 | k head 1 | v head 0 | v head 1 |
//
// Index names: i the row that asks (0 .. T-1), j the row that is asked, e the channel inside a head
// of D channels; line = b * H + h.
#ifndef D_HEAD
#define D_HEAD 64
#endif
#ifndef TILE
#define TILE 64
#endif
#ifndef R
#define R 8
#endif
#ifndef ITEMS_X
#define ITEMS_X 8
#endif
#ifndef DEPTH
#define DEPTH 16
#endif
#define S (TILE / ITEMS_X)
#define ITEMS_Y (TILE / R)
#define ITEMS (ITEMS_X * ITEMS_Y)
#define E ((D_HEAD + 4 * ITEMS_X - 1) / (4 * ITEMS_X) * 4)     // a multiple of four
#define D_WIDE (E * ITEMS_X)                                   // D_HEAD, rounded up
#define ROW (TILE + 4)                                         // a row of a tile of scores
#define D_ROW (D_WIDE + 4)
#define CHUNK_ROW (D_ROW > ROW ? D_ROW : ROW)

#if ITEMS_X > ROW || TILE % (4 * ITEMS_X) || R % 4 || TILE * DEPTH % (4 * ITEMS) || TILE % DEPTH
#error "the items of a group cannot share these tiles evenly"
#endif

// Four channels at once where every row of a head starts at a multiple of four.
#if D_HEAD % 4 == 0
#define WIDTH 4
typedef float4 channels;
#else
#define WIDTH 1
typedef float channels;
#endif
#define CHANNELS(p) (*(__global const channels *)(p))
#define FOUR(p) (*(float4 *)(p))
#define LOCAL_FOUR(p) (*(__local float4 *)(p))

#define ITEM_X ((int)get_local_id(0) % ITEMS_X)
#define ITEM_Y ((int)get_local_id(0) / ITEMS_X)
// The place of an item's n-th row or column; `across` items share them.
#define PLACE(n, item, across) ((n) / 4 * 4 * (across) + 4 * (item) + (n) % 4)
#define ROW_OF(r) PLACE(r, ITEM_Y, ITEMS_Y)
#define SCORE_OF(s) PLACE(s, ITEM_X, ITEMS_X)

// chunk[e][w] = x[row0 + w][e0 + e] for TILE rows w and DEPTH channels e. Rows past the end repeat
// the last one: what they give is masked or not stored.
void stage_channels(__local float *chunk, __global const float *x, const int stride,
                    const int row0, const int end, const int e0)
{
#pragma unroll
    for (int n = 0; n < TILE * DEPTH / ITEMS; n += WIDTH) {
        const int at = WIDTH * (int)get_local_id(0) + n * ITEMS;
        const int w = at / DEPTH, e = at % DEPTH;
        float value[WIDTH] __attribute__((aligned(16)));
        *(channels *)value = e0 + e < D_HEAD
            ? CHANNELS(x + min(row0 + w, end - 1) * stride + e0 + e) : (channels)(0.0f);
#pragma unroll
        for (int l = 0; l < WIDTH; ++l) chunk[(e + l) * ROW + w] = value[l];
    }
}

// chunk[p][e] = x[row0 + p][e] for DEPTH rows p and all channels e.
void stage_rows(__local float *chunk, __global const float *x, const int stride, const int row0,
                const int end)
{
#pragma unroll
    for (int n = 0; n < (DEPTH * D_WIDE + ITEMS - 1) / ITEMS; n += WIDTH) {
        const int at = WIDTH * (int)get_local_id(0) + n * ITEMS;
        const int p = at / D_WIDE, e = at % D_WIDE;
        if (p < DEPTH)
            *(__local channels *)(chunk + p * D_ROW + e) = e < D_HEAD
                ? CHANNELS(x + min(row0 + p, end - 1) * stride + e) : (channels)(0.0f);
    }
}

// sum[r][c] += sum over p < DEPTH of left[p][row r] right[p][column c]; `count` columns an item.
void multiply(float *sum, __local const float *left, __local const float *right,
              const int right_row, const int count)
{
    left += 4 * ITEM_Y;
    right += 4 * ITEM_X;
#pragma unroll
    for (int p = 0; p < DEPTH; ++p) {
        float a[R] __attribute__((aligned(16)));
        float b[16] __attribute__((aligned(16)));
#pragma unroll
        for (int r = 0; r < R; r += 4) FOUR(a + r) = LOCAL_FOUR(left + p * ROW + r * ITEMS_Y);
#pragma unroll
        for (int c = 0; c < count; c += 4)
            FOUR(b + c) = LOCAL_FOUR(right + p * right_row + c * ITEMS_X);
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
            for (int c = 0; c < count; ++c) sum[r * count + c] += a[r] * b[c];
    }
}

// score[r][s] = the product of row ROW_OF(r) of `down` and row SCORE_OF(s) of `across`.
void score_tile(float *score, __local float *chunk_a, __local float *chunk_b,
                __global const float *down, const int down_stride, const int down0,
                __global const float *across, const int across_stride, const int across0,
                const int end)
{
#pragma unroll
    for (int n = 0; n < R * S; ++n) score[n] = 0.0f;
    for (int e0 = 0; e0 < D_HEAD; e0 += DEPTH) {
        barrier(CLK_LOCAL_MEM_FENCE);              // the chunks were read
        stage_channels(chunk_a, down, down_stride, down0, end, e0);
        stage_channels(chunk_b, across, across_stride, across0, end, e0);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply(score, chunk_a, chunk_b, ROW, S);
    }
}

// Lays an item's scores into local memory as [column][row], to be the left operand of a product.
void put_scores(__local float *tile, const float *score)
{
#pragma unroll
    for (int s = 0; s < S; ++s)
#pragma unroll
        for (int r = 0; r < R; r += 4)
            LOCAL_FOUR(tile + SCORE_OF(s) * ROW + ROW_OF(r)) = (float4)(
                score[r * S + s], score[(r + 1) * S + s], score[(r + 2) * S + s],
                score[(r + 3) * S + s]);
}

// sum[r][c] += sum over the TILE columns p of the scores in `tile`, times row row0 + p of x.
void mix_tile(float *sum, __local const float *tile, __local float *chunk,
              __global const float *x, const int stride, const int row0, const int end)
{
    for (int p0 = 0; p0 < TILE; p0 += DEPTH) {
        barrier(CLK_LOCAL_MEM_FENCE);              // the tile is complete; the chunk was read
        stage_rows(chunk, x, stride, row0 + p0, end);
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply(sum, tile + p0 * ROW, chunk, D_ROW, E);
    }
}

// Each row's numbers of all items of one y, added up in their order; all get the sum.
void add_across(float *value, __local float *part)             // part[x][row]
{
    // No barrier is needed here: part is unused as yet, or was read before the last tile was mixed.
#pragma unroll
    for (int r = 0; r < R; ++r) part[ITEM_X * TILE + ROW_OF(r)] = value[r];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int r = 0; r < R; ++r) {
        value[r] = 0.0f;
        for (int x = 0; x < ITEMS_X; ++x) value[r] += part[x * TILE + ROW_OF(r)];
    }
}

// Rows row0 .. of (rows, D) with this stride take an item's sums, each row times its factor.
void store_rows(__global float *x, const int stride, const int row0, const int end,
                const float *sum, const float *factor)
{
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
        for (int c = 0; c < E; ++c)
            if (row0 + ROW_OF(r) < end && PLACE(c, ITEM_X, ITEMS_X) < D_HEAD)
                x[(row0 + ROW_OF(r)) * stride + PLACE(c, ITEM_X, ITEMS_X)] = sum[r * E + c] * factor[r];
}

#define LOCALS \
    __local float chunk_a[DEPTH * ROW] __attribute__((aligned(16))); \
    __local float chunk_b[DEPTH * CHUNK_ROW] __attribute__((aligned(16))); \
    __local float tile[TILE * ROW] __attribute__((aligned(16)))

// Forward. Group id 0 is the line, id 1 the tile of rows, the longest first.
// The rows first .. length-1 ask, the rows 0 .. length-1 are asked; T is the number of rows in memory.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void fused_attention_forward_group(__global const float *restrict qkv,      // (B, T, 3C)
                                   __global float *restrict y,              // (B, Q, C)
                                   __global float *restrict log_sum,        // (B, H, Q)
                                   const int B, const int T, const int H,
                                   const int first, const int length, const float scale)
{
    LOCALS;
    __local float part[ITEMS_X * TILE];
    const int line = get_group_id(0), b = line / H, h = line % H;
    if (b >= B) return;
    const int i0 = first + (get_num_groups(1) - 1 - get_group_id(1)) * TILE;
    const int Q = length - first, C = H * D_HEAD;
    __global const float *q = qkv + b * T * 3 * C + h * D_HEAD;
    float sum[R * E], score[R * S], largest[R], total[R];
#pragma unroll
    for (int n = 0; n < R * E; ++n) sum[n] = 0.0f;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        largest[r] = -INFINITY;
        total[r] = 0.0f;
    }
    const int seen = min(i0 + TILE, length);       // keys that the last row of this tile sees
    for (int j0 = 0; j0 < seen; j0 += TILE) {
        score_tile(score, chunk_a, chunk_b, q, 3 * C, i0, q + C, 3 * C, j0, length);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            float most = -INFINITY;
#pragma unroll
            for (int s = 0; s < S; ++s) {
                const int ahead = j0 + SCORE_OF(s) > i0 + ROW_OF(r);
                score[r * S + s] = ahead ? -INFINITY : score[r * S + s] * scale;
                most = fmax(most, score[r * S + s]);
            }
            part[ITEM_X * TILE + ROW_OF(r)] = most;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int r = 0; r < R; ++r) {
            float most = largest[r];
            for (int x = 0; x < ITEMS_X; ++x) most = fmax(most, part[x * TILE + ROW_OF(r)]);
            const float shrink = exp(largest[r] - most);   // what was summed under the old maximum
            largest[r] = most;
            total[r] *= shrink;
#pragma unroll
            for (int s = 0; s < S; ++s) {
                score[r * S + s] = exp(score[r * S + s] - most);
                total[r] += score[r * S + s];
            }
#pragma unroll
            for (int c = 0; c < E; ++c) sum[r * E + c] *= shrink;
        }
        put_scores(tile, score);
        mix_tile(sum, tile, chunk_b, q + 2 * C, 3 * C, j0, length);
    }
    add_across(total, part);
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int i = i0 + ROW_OF(r);
        if (ITEM_X == 0 && i < length) log_sum[line * Q + i - first] = largest[r] + log(total[r]);
        total[r] = 1.0f / total[r];
    }
    store_rows(y + (b * Q - first) * C + h * D_HEAD, C, i0, length, sum, total);
}

// ---- backward, for whole sequences: first = 0, length = T ----

// dq and delta. Groups as in forward.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void fused_attention_backward_q_group(__global const float *restrict qkv,       // (B, T, 3C)
                                      __global const float *restrict y,         // (B, T, C)
                                      __global const float *restrict log_sum,   // (B, H, T)
                                      __global const float *restrict dy,        // (B, T, C)
                                      __global float *restrict dqkv,            // (B, T, 3C)
                                      __global float *restrict delta,           // (B, H, T)
                                      const int B, const int T, const int H, const float scale)
{
    LOCALS;
    const int line = get_group_id(0), b = line / H, h = line % H;
    if (b >= B) return;
    const int i0 = (get_num_groups(1) - 1 - get_group_id(1)) * TILE;
    const int C = H * D_HEAD;
    __global const float *q = qkv + b * T * 3 * C + h * D_HEAD;
    __global const float *up = dy + b * T * C + h * D_HEAD, *heard = y + b * T * C + h * D_HEAD;
    float dq[R * E], score[R * S], dshare[R * S], dot[R], top[R], factor[R];
#pragma unroll
    for (int n = 0; n < R * E; ++n) dq[n] = 0.0f;
#pragma unroll
    for (int r = 0; r < R; ++r) {
        const int i = min(i0 + ROW_OF(r), T - 1);
        top[r] = log_sum[line * T + i];
        factor[r] = scale;
        dot[r] = 0.0f;
        for (int e = ITEM_X; e < D_HEAD; e += ITEMS_X) dot[r] += up[i * C + e] * heard[i * C + e];
    }
    add_across(dot, tile);
#pragma unroll
    for (int r = 0; r < R; ++r)
        if (ITEM_X == 0 && i0 + ROW_OF(r) < T) delta[line * T + i0 + ROW_OF(r)] = dot[r];

    for (int j0 = 0; j0 < min(i0 + TILE, T); j0 += TILE) {
        score_tile(score, chunk_a, chunk_b, q, 3 * C, i0, q + C, 3 * C, j0, T);
        score_tile(dshare, chunk_a, chunk_b, up, C, i0, q + 2 * C, 3 * C, j0, T);
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
            for (int s = 0; s < S; ++s) {
                const int ahead = j0 + SCORE_OF(s) > i0 + ROW_OF(r);
                // Not x - top: Intel's CPU compiler negates it before the loop, one for all.
                const float share = ahead ? 0.0f : exp(-(top[r] - score[r * S + s] * scale));
                score[r * S + s] = share * (dshare[r * S + s] - dot[r]);
            }
        }
        put_scores(tile, score);
        mix_tile(dq, tile, chunk_b, q + C, 3 * C, j0, T);
    }
    store_rows(dqkv + b * T * 3 * C + h * D_HEAD, 3 * C, i0, T, dq, factor);
}

// dk and dv. The group's rows are keys, its columns the queries that see them.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void fused_attention_backward_kv_group(__global const float *restrict qkv,      // (B, T, 3C)
                                       __global const float *restrict log_sum,  // (B, H, T)
                                       __global const float *restrict dy,       // (B, T, C)
                                       __global const float *restrict delta,    // (B, H, T)
                                       __global float *restrict dqkv,           // (B, T, 3C)
                                       const int B, const int T, const int H, const float scale)
{
    LOCALS;
    const int line = get_group_id(0), b = line / H, h = line % H;
    if (b >= B) return;
    const int j0 = get_group_id(1) * TILE;         // the first keys are seen by most
    const int C = H * D_HEAD;
    __global const float *q = qkv + b * T * 3 * C + h * D_HEAD;
    __global const float *up = dy + b * T * C + h * D_HEAD;
    float dk[R * E], dv[R * E], score[R * S], dshare[R * S], factor[R];
#pragma unroll
    for (int n = 0; n < R * E; ++n) dk[n] = dv[n] = 0.0f;

    for (int i0 = j0; i0 < T; i0 += TILE) {
        score_tile(score, chunk_a, chunk_b, q + C, 3 * C, j0, q, 3 * C, i0, T);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            const int i = i0 + SCORE_OF(s);
            const float top = log_sum[line * T + min(i, T - 1)];
#pragma unroll
            for (int r = 0; r < R; ++r) {
                const int unseen = j0 + ROW_OF(r) > i || i >= T;
                score[r * S + s] = unseen ? 0.0f : exp(score[r * S + s] * scale - top);
            }
        }
        put_scores(tile, score);
        mix_tile(dv, tile, chunk_b, up, C, i0, T);

        score_tile(dshare, chunk_a, chunk_b, q + 2 * C, 3 * C, j0, up, C, i0, T);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            const float dot = delta[line * T + min(i0 + SCORE_OF(s), T - 1)];
#pragma unroll
            for (int r = 0; r < R; ++r) score[r * S + s] *= dshare[r * S + s] - dot;
        }
        put_scores(tile, score);                   // the product before it has been passed by all
        mix_tile(dk, tile, chunk_b, q, 3 * C, i0, T);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) factor[r] = scale;
    store_rows(dqkv + b * T * 3 * C + C + h * D_HEAD, 3 * C, j0, T, dk, factor);
#pragma unroll
    for (int r = 0; r < R; ++r) factor[r] = 1.0f;
    store_rows(dqkv + b * T * 3 * C + 2 * C + h * D_HEAD, 3 * C, j0, T, dv, factor);
}
