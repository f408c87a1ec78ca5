// Matrix product for a GPU: c = a b + bias + plus, or c = c + a b, either operand transposed or not.
//
// A group computes a block of c, TILE_M rows by TILE_N columns. It walks along the sum: it brings
// TILE_K columns of a and TILE_K rows of b into local memory, and every work-item multiplies them
// into the ITEM_M x ITEM_N results that it keeps in registers.
//
//                      TILE_N columns             for each p:    right[0 .. ITEM_N-1]
//                    +----------------+                        +------------------+
//           b    p   |================|              left[0]   | sum += left right|
//        p           +----------------+              left[1]   |                  |
//      +---+         +----------------+              ...       +------------------+
//      | | | TILE_M  |                |
//   a  | | | rows    |       c        |     ITEM_M + ITEM_N numbers are loaded for
//      | | |         |                |     ITEM_M * ITEM_N multiplications
//      +---+         +----------------+
//
// What makes it fast, one idea after the other, with TFLOP/s for square matrices of 2048 and of 4096
// on an NVIDIA H200. The rungs below stand in matmul.cl: naive 1.0, swapped 5.5, tiled 6.2 (2048).
//
//   registers   34, 35. A block of 128 x 128, 8 x 8 results an item: 16 numbers from local memory
//               serve 64 multiplications
//   wide        43, 45. Four numbers a load: from local memory, because both tiles lie [p][..] (so
//               one of them is transposed on the way), and from memory where its rows are multiples
//               of four
//   ahead       46, 47. The next tile travels to registers while this one is multiplied; its loads
//               stand before the barrier, behind it the compiler put them off until they were needed
//   taller      46, 47. 16 x 8 results an item: 24 numbers serve 128 multiplications. Its 227
//               registers leave room for few items, so the next tile goes into a second pair of
//               tiles, and one barrier a tile is enough (8 x 8 results are faster with one pair)
//   smaller     47, 48. Blocks of 64 x 128, so 64 items a group: fewer wait at each barrier. cuBLAS
//               reached 46 to 49 and 50 to 51
//   slices      where c is small and the sum long, SLICES sets of items share the p of a tile and
//               add up their results at the end: 128 x 384 numbers of 800 steps 20 us -> 12 us
//   parts       the same over groups: group z of the third dimension adds up `part` steps from
//               z * part on, into c + z * m * n, and matmul_parts adds the parts in their order:
//               768 x 768 numbers of 4096 steps 219 us -> 137 us
//
// What did not help: blocks of 128 x 256 (36, 35) or 64 x 256 (48 at 4096), 16 steps a tile (45),
// scalar loads from memory (33). What is left: of the loop's instructions 87 % are multiplications,
// so 58 TFLOP/s would be the most; the rest waits at barriers and for local memory.
//
// A_T: a lies (k, m). B_T: b lies (n, k). A_WIDTH, B_WIDTH, C_WIDTH: 4 where the rows of that matrix
// in memory are multiples of four numbers, else 1. Without slices and parts every result adds up in
// the order of p, so all tiles give the same bits.
//
// Index names: row and col in c, p along the sum; w counts the rows or columns of a tile.
#ifndef TILE_M
#define TILE_M 64
#define TILE_N 128
#define TILE_K 8
#define ITEM_M 16
#define ITEM_N 8
#endif
#ifndef SLICES
#define SLICES 1
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef A_T
#define A_T 0
#define B_T 0
#endif
#ifndef A_WIDTH
#define A_WIDTH 1
#define B_WIDTH 1
#define C_WIDTH 1
#endif
#define ITEMS_M (TILE_M / ITEM_M)
#define ITEMS_N (TILE_N / ITEM_N)
#define ITEMS (ITEMS_M * ITEMS_N * SLICES)
#define PAD 4                                      // spreads transposed stores over the memory banks
#define A_SIZE (TILE_K * (TILE_M + PAD))
#define B_SIZE (TILE_K * (TILE_N + PAD))
#if TILE_M * TILE_K % (ITEMS * A_WIDTH) || TILE_N * TILE_K % (ITEMS * B_WIDTH) || TILE_K % SLICES
#error "the items of a group cannot share these tiles evenly"
#endif
#if SLICES > 1 && TILE_M * TILE_N > BUFFERS * A_SIZE
#error "the sums of a slice do not fit into the tiles"
#endif
#define FOUR(p) (*(float4 *)(p))
#define LOCAL_FOUR(p) (*(__local float4 *)(p))

// Element e of a tile that is `wide` across lies at [p][w]. p_first: p runs fastest in memory.
#define W(e) (p_first ? (e) / TILE_K : (e) % wide)
#define P(e) (p_first ? (e) % TILE_K : (e) / wide)

// This item's share of a tile, from memory to registers. w past the end repeats the last ones, whose
// results are not stored; p past the end counts as 0.
void fetch(float *share, __global const float *restrict x, const int stride, const int width,
           const int wide, const int p_first, const int w0, const int w_end,
           const int p0, const int p_end)
{
#pragma unroll
    for (int i = 0; i < wide * TILE_K / ITEMS; i += width) {
        const int e = width * (int)get_local_id(0) + i * ITEMS;
        const int w = min(w0 + W(e), w_end - (p_first ? 1 : width)), p = p0 + P(e);
        __global const float *at = x + (p_first ? w * stride + p : p * stride + w);
        if (width == 4)
            FOUR(share + i) = p < p_end ? *(__global const float4 *)at : (float4)(0.0f);
        else
            share[i] = p < p_end ? *at : 0.0f;
    }
}

// The same share, from registers into the tile.
void put(const float *share, __local float *tile, const int width, const int wide, const int p_first)
{
#pragma unroll
    for (int i = 0; i < wide * TILE_K / ITEMS; i += width) {
        const int e = width * (int)get_local_id(0) + i * ITEMS;
        __local float *at = tile + P(e) * (wide + PAD) + W(e);
        if (width == 4 && !p_first)
            LOCAL_FOUR(at) = FOUR(share + i);
        else
#pragma unroll
            for (int l = 0; l < width; ++l) at[l * (wide + PAD)] = share[i + l];
    }
}

// Slice and place of an item; its i-th row and j-th column in the block. They come in fours, each
// from another strip of 4 * ITEMS_M rows (4 * ITEMS_N columns): neighbours read neighbouring fours.
#define PLACE ((int)get_local_id(0) % (ITEMS_M * ITEMS_N))
#define SLICE ((int)get_local_id(0) / (ITEMS_M * ITEMS_N))
#define ROW_OF(i) ((i) / 4 * 4 * ITEMS_M + PLACE / ITEMS_N * 4 + (i) % 4)
#define COL_OF(j) ((j) / 4 * 4 * ITEMS_N + PLACE % ITEMS_N * 4 + (j) % 4)

void multiply(float *sum, __local const float *ta, __local const float *tb)
{
#pragma unroll
    for (int q = 0; q < TILE_K; q += SLICES) {
        const int p = q + SLICE;
        float left[ITEM_M] __attribute__((aligned(16)));
        float right[ITEM_N] __attribute__((aligned(16)));
#pragma unroll
        for (int i = 0; i < ITEM_M; i += 4)
            FOUR(left + i) = LOCAL_FOUR(ta + p * (TILE_M + PAD) + ROW_OF(i));
#pragma unroll
        for (int j = 0; j < ITEM_N; j += 4)
            FOUR(right + j) = LOCAL_FOUR(tb + p * (TILE_N + PAD) + COL_OF(j));
#pragma unroll
        for (int i = 0; i < ITEM_M; ++i)
#pragma unroll
            for (int j = 0; j < ITEM_N; ++j) sum[i * ITEM_N + j] += left[i] * right[j];
    }
}

// Slice 0 takes the sums of the others in their order, through the tiles, which are free now.
void add_slices(float *sum, __local float *tiles)
{
    for (int s = 1; s < SLICES; ++s) {
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int i = 0; i < ITEM_M * ITEM_N; ++i)
            if (SLICE == s) tiles[i * ITEMS_M * ITEMS_N + PLACE] = sum[i];
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int i = 0; i < ITEM_M * ITEM_N; ++i)
            if (SLICE == 0) sum[i] += tiles[i * ITEMS_M * ITEMS_N + PLACE];
    }
}

// c = sum + bias + plus, or c = c + that; C_WIDTH results at a time.
void store(const float *sum, __global const float *bias, __global const float *plus,
           __global float *c, const int m, const int n, const int row0, const int col0,
           const int add)
{
#pragma unroll
    for (int j = 0; j < ITEM_N; j += C_WIDTH) {
        const int col = col0 + COL_OF(j);
        if (col >= n || SLICE > 0) continue;
        float shift[C_WIDTH] __attribute__((aligned(16)));
#pragma unroll
        for (int l = 0; l < C_WIDTH; ++l) shift[l] = bias ? bias[col + l] : 0.0f;
#pragma unroll
        for (int i = 0; i < ITEM_M; ++i) {
            const int row = row0 + ROW_OF(i);
            if (row >= m) continue;
            const int at = row * n + col;
#if C_WIDTH == 4
            float4 result = FOUR(sum + i * ITEM_N + j) + FOUR(shift);
            if (plus) result += *(__global const float4 *)(plus + at);
            if (add) result += *(__global float4 *)(c + at);
            *(__global float4 *)(c + at) = result;
#else
            float result = sum[i * ITEM_N + j] + shift[0];
            if (plus) result += plus[at];
            if (add) result += c[at];
            c[at] = result;
#endif
        }
    }
}

// c = a b + bias + plus; with `add` that is added to c. In a grid of several parts: part z of a b.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void matmul_group(__global const float *restrict a, __global const float *restrict b,
                  __global const float *restrict bias,    // (n) or NULL
                  __global const float *restrict plus,    // (m, n) or NULL
                  __global float *restrict c, const int m, const int n, const int k,
                  const int part, const int add)
{
    __local float ta[BUFFERS * A_SIZE] __attribute__((aligned(16)));
    __local float tb[BUFFERS * B_SIZE] __attribute__((aligned(16)));
    const int row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;
    const int z = get_group_id(2), last = min(z * part + part, k);
    float a_share[TILE_M * TILE_K / ITEMS] __attribute__((aligned(16)));
    float b_share[TILE_N * TILE_K / ITEMS] __attribute__((aligned(16)));
    float sum[ITEM_M * ITEM_N] __attribute__((aligned(16)));
#pragma unroll
    for (int i = 0; i < ITEM_M * ITEM_N; ++i) sum[i] = 0.0f;

    fetch(a_share, a, A_T ? m : k, A_WIDTH, TILE_M, !A_T, row0, m, z * part, last);
    fetch(b_share, b, B_T ? k : n, B_WIDTH, TILE_N, B_T, col0, n, z * part, last);
    int now = 0;
    for (int p0 = z * part; p0 < last; p0 += TILE_K) {
        put(a_share, ta + now * A_SIZE, A_WIDTH, TILE_M, !A_T);
        put(b_share, tb + now * B_SIZE, B_WIDTH, TILE_N, B_T);
        // Asked for before the barrier: behind it, a compiler puts it off until it is needed.
        if (p0 + TILE_K < last) {
            fetch(a_share, a, A_T ? m : k, A_WIDTH, TILE_M, !A_T, row0, m, p0 + TILE_K, last);
            fetch(b_share, b, B_T ? k : n, B_WIDTH, TILE_N, B_T, col0, n, p0 + TILE_K, last);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply(sum, ta + now * A_SIZE, tb + now * B_SIZE);
#if BUFFERS == 2
        now = 1 - now;                             // all have read that pair before this barrier
#else
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
    add_slices(sum, ta);
    store(sum, bias, plus, c + z * m * n, m, n, row0, col0, add);
}

// c = the sum of the parts + bias + plus, or c = c + that. One work-item, one element of c.
__kernel void matmul_parts(__global const float *restrict parts,   // (count, m, n)
                           __global const float *restrict bias,    // (n) or NULL
                           __global const float *restrict plus,    // (m, n) or NULL
                           __global float *restrict c,             // (m, n)
                           const int m, const int n, const int count, const int add)
{
    const int i = get_global_id(0);
    if (i >= m * n) return;
    float sum = bias ? bias[i % n] : 0.0f;
    for (int z = 0; z < count; ++z) sum += parts[z * m * n + i];
    if (plus) sum += plus[i];
    c[i] = add ? c[i] + sum : sum;
}
