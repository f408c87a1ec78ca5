// Matrix product: c = a b, where a is (m, k), b is (k, n) and c is (m, n).
//
//              col                    One element of c is one row of a times one column of b:
//            b . | . .                  c[row][col] = sum over p of a[row][p] * b[p][col]
//              . | . .
//   row  a ----- c                    In memory a row lies in one piece, one row after the other:
//                                          a[row][p] is a[row * k + p]
//
// The ladder. Every rung gives the same result, within the rounding of its order of summation.
//
//   matmul_naive        one work-item for one element; the loop of the definition
//   matmul_swapped      the same, with the two ids exchanged: on a GPU, neighbouring work-items then
//                       read neighbouring addresses, which is worth a factor of ten; a CPU is indifferent
//   matmul_tiled        a group loads 16 x 16 tiles into local memory once and uses them 16 times;
//                       any transpose, and a bias: the version for GPUs
//   matmul_tiled_add    the same, adding to what c holds
//   matmul_blocked      one work-item computes a block of c in registers, so each vector that it loads
//                       is used many times: the version for CPUs
//   matmul_packed       the same for a transposed b: what the blocks share is first laid out in the
//                       order in which they read it
//   matmul_packed_add   the same for a transposed a, adding to what c holds
//
// Index names: row and col in c, p along the sum.

// One work-item, one element of c.
__kernel void matmul_naive(__global const float *restrict a, __global const float *restrict b,
                           __global float *restrict c, const int m, const int n, const int k)
{
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[p * n + col];
    c[row * n + col] = sum;
}

__kernel void matmul_swapped(__global const float *restrict a, __global const float *restrict b,
                             __global float *restrict c, const int m, const int n, const int k)
{
    const int col = get_global_id(0);
    const int row = get_global_id(1);
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[p * n + col];
    c[row * n + col] = sum;
}

// TILE x TILE work-items share two tiles. A transposed matrix is only read with other strides:
// a[row][p] is a[row * a_row + p * a_col], and b[p][col] is b[p * b_row + col * b_col].
#ifndef TILE
#define TILE 16
#endif
typedef float tile[TILE][TILE + 1];                // + 1 spreads the rows over the memory banks

float tiled_sum(__global const float *restrict a, __global const float *restrict b,
                __local tile *ta, __local tile *tb, const int m, const int n, const int k,
                const int a_row, const int a_col, const int b_row, const int b_col)
{
    const int x = get_local_id(0), y = get_local_id(1);
    const int col = get_global_id(0), row = get_global_id(1);
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        const int pa = start + x, pb = start + y;
        (*ta)[y][x] = row < m && pa < k ? a[row * a_row + pa * a_col] : 0.0f;
        (*tb)[y][x] = col < n && pb < k ? b[pb * b_row + col * b_col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < TILE; ++p) sum += (*ta)[y][p] * (*tb)[p][x];
        barrier(CLK_LOCAL_MEM_FENCE);              // nobody loads the next tile while another reads
    }
    return sum;
}

// c = a b + bias + plus: plus is what a residual connection brings.
__kernel void matmul_tiled(__global const float *restrict a, __global const float *restrict b,
                           __global const float *restrict bias,    // (n) or NULL
                           __global const float *restrict plus,    // (m, n) or NULL
                           __global float *restrict c, const int m, const int n, const int k,
                           const int a_row, const int a_col, const int b_row, const int b_col)
{
    __local tile ta, tb;
    const int col = get_global_id(0), row = get_global_id(1);
    float sum = tiled_sum(a, b, &ta, &tb, m, n, k, a_row, a_col, b_row, b_col);
    if (row >= m || col >= n) return;
    if (bias) sum += bias[col];
    if (plus) sum += plus[row * n + col];
    c[row * n + col] = sum;
}

// c = c + a b.
__kernel void matmul_tiled_add(__global const float *restrict a, __global const float *restrict b,
                               __global float *restrict c, const int m, const int n, const int k,
                               const int a_row, const int a_col, const int b_row, const int b_col)
{
    __local tile ta, tb;
    const int col = get_global_id(0), row = get_global_id(1);
    const float sum = tiled_sum(a, b, &ta, &tb, m, n, k, a_row, a_col, b_row, b_col);
    if (row < m && col < n) c[row * n + col] += sum;
}

// A vector that may start at any float, not only at multiples of its own size.
typedef float16 float16u __attribute__((aligned(4)));
typedef float8 float8u __attribute__((aligned(4)));

// One work-item, a block of c: ROWS rows by VECTORS vectors of 16 columns, kept in registers.
//
//                     b   p -> [ 16 columns ]
//   a  row 0 [p] ----------->  sum[0]            each number of a is used 16 times, each vector
//      row 1 [p] ----------->  sum[1]   ...      of b ROWS times, before the next one is loaded
//
// Twelve vector registers of sums hide the time that an addition takes: 6 rows of 16 columns fill
// them on a processor with registers of 8 numbers, 6 rows of 32 on one with registers of 16.
//
// A work-item goes down STACK such blocks, DEPTH steps of the sum at a time, so the panel of b that
// they share, DEPTH x COLUMNS, is fetched from memory once and then found in the nearest cache. The
// order of every sum is that of the definition, whatever the sizes.
#ifndef ROWS
#define ROWS 6
#endif
#ifndef VECTORS
#define VECTORS 1
#endif
#define COLUMNS (16 * VECTORS)
#ifndef STACK
#define STACK 8
#endif
#ifndef DEPTH
#define DEPTH 256
#endif

// The first `count` numbers of x into y, zeros behind them; and the way back. Vectors go by
// pointer: how a function takes one by value depends on the processor.
void load_some(__global const float *x, float16 *y, const int count)
{
    *y = 0.0f;
    for (int i = 0; i < min(count, 16); ++i) ((float *)y)[i] = x[i];
}

void store_some(__global float *x, const float16 *y, const int count)
{
    for (int i = 0; i < min(count, 16); ++i) x[i] = ((const float *)y)[i];
}

// Adds `steps` steps of the sum to one block. The pointers show the first number that is meant;
// a_row, a_col and b_row are strides, so one text serves a matrix, its transpose and a packed copy.
// The sums start from bias and plus, where they are given: the bias of a column, and what a
// residual connection or c itself already holds. Rows past the end repeat the last one and are not
// stored. The text is a macro because a pointer's type names the memory, A or B, that it shows.
#define BLOCK(NAME, A, B)                                                                          \
void NAME(A const float *restrict a, const int a_row, const int a_col,                             \
          B const float *restrict b, const int b_row, __global const float *bias,                  \
          __global const float *plus, __global float *c,                                           \
          const int steps, const int rows, const int cols, const int n)                            \
{                                                                                                  \
    float16 sum[ROWS][VECTORS];                                                                    \
    int at[ROWS];                                                                                  \
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                             \
        const int row = min(r, rows - 1);                                                          \
        at[r] = row * a_row;                                                                       \
        _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) {                                      \
            float16 some = 0.0f;                                                                   \
            if (bias && cols < COLUMNS) load_some(bias + 16 * v, &some, cols - 16 * v);            \
            else if (bias) some = *(__global const float16u *)(bias + 16 * v);                     \
            sum[r][v] = some;                                                                      \
            if (plus && cols < COLUMNS) load_some(plus + row * n + 16 * v, &some, cols - 16 * v);  \
            else if (plus) some = *(__global const float16u *)(plus + row * n + 16 * v);           \
            if (plus) sum[r][v] += some;                                                           \
        }                                                                                          \
    }                                                                                              \
    for (int p = 0; p < steps; ++p) {                                                              \
        float16 line[VECTORS];                                                                     \
        _Pragma("unroll") for (int v = 0; v < VECTORS; ++v)                                        \
            line[v] = *(B const float16u *)(b + p * b_row + 16 * v);                               \
        _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                         \
            const float x = a[at[r] + p * a_col];                                                  \
            _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) sum[r][v] += x * line[v];          \
        }                                                                                          \
    }                                                                                              \
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                             \
        _Pragma("unroll") for (int v = 0; v < VECTORS; ++v) {                                      \
            __global float *to = c + r * n + 16 * v;                                               \
            const float16 some = sum[r][v];                                                        \
            if (r < rows && cols < COLUMNS) store_some(to, &some, cols - 16 * v);                  \
            else if (r < rows) *(__global float16u *)to = some;                                    \
        }                                                                                          \
    }                                                                                              \
}

BLOCK(block, __global, __global)
BLOCK(block_a, __local, __global)                  // a is packed
BLOCK(block_b, __global, __local)                  // b is packed

// Writes an 8 x 8 patch transposed: neighbours exchange numbers, then pairs, then halves of rows.
// Every number is named by itself: Oclgrind crashed on vectors made of parts of vectors.
#define PAIRS_0(x, y) ((float8)(x.s0, y.s0, x.s1, y.s1, x.s4, y.s4, x.s5, y.s5))
#define PAIRS_1(x, y) ((float8)(x.s2, y.s2, x.s3, y.s3, x.s6, y.s6, x.s7, y.s7))
#define FOURS_0(x, y) ((float8)(x.s0, x.s1, y.s0, y.s1, x.s4, x.s5, y.s4, y.s5))
#define FOURS_1(x, y) ((float8)(x.s2, x.s3, y.s2, y.s3, x.s6, x.s7, y.s6, y.s7))
#define HALVES_0(x, y) ((float8)(x.s0, x.s1, x.s2, x.s3, y.s0, y.s1, y.s2, y.s3))
#define HALVES_1(x, y) ((float8)(x.s4, x.s5, x.s6, x.s7, y.s4, y.s5, y.s6, y.s7))

void turn(__global const float *from, const int stride, __local float *to)
{
    float8 x[8], y[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = *(__global const float8u *)(from + i * stride);
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        y[i] = PAIRS_0(x[i], x[i + 1]);
        y[i + 1] = PAIRS_1(x[i], x[i + 1]);
    }
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        x[i] = FOURS_0(y[i], y[i + 2]);
        x[i + 1] = FOURS_1(y[i], y[i + 2]);
        x[i + 2] = FOURS_0(y[i + 1], y[i + 3]);
        x[i + 3] = FOURS_1(y[i + 1], y[i + 3]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        *(__local float8u *)(to + i * COLUMNS) = HALVES_0(x[i], x[i + 4]);
        *(__local float8u *)(to + (i + 4) * COLUMNS) = HALVES_1(x[i], x[i + 4]);
    }
}

// Goes down the rows first .. last of a panel of columns with a packed b: `packed` holds DEPTH
// steps of it, one after the other, and zeros in the columns that b does not have.
void packed_panel(__global const float *restrict a, const int a_row, const int a_col,
                  __global const float *restrict b, const int b_row, const int b_col,
                  __global const float *bias, __global const float *plus, __global float *c,
                  __local float *packed, const int first, const int last, const int col0,
                  const int n, const int k)
{
    const int cols = min(n - col0, COLUMNS);
    for (int p0 = 0; p0 < k; p0 += DEPTH) {
        const int steps = min(k - p0, DEPTH);
        __global const float *from = b + p0 * b_row + col0 * b_col;
        int p = 0;
        if (b_row == 1 && cols == COLUMNS)
            for (; p + 8 <= steps; p += 8)
                for (int col = 0; col < COLUMNS; col += 8)
                    turn(from + p + col * b_col, b_col, packed + p * COLUMNS + col);
        for (; p < steps; ++p)
            for (int col = 0; col < COLUMNS; ++col)
                packed[p * COLUMNS + col] = col < cols ? from[p * b_row + col * b_col] : 0.0f;
        for (int row = first; row < last; row += ROWS) {
            const int at = row * n + col0;
            block_b(a + row * a_row + p0 * a_col, a_row, a_col, packed, COLUMNS,
                    bias && !p0 ? bias + col0 : 0, p0 ? c + at : plus ? plus + at : 0, c + at,
                    steps, last - row, cols, n);
        }
    }
}

// c = a b + bias + plus: plus is what a residual connection brings. A group is one work-item.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_blocked(__global const float *restrict a, __global const float *restrict b,
                    __global const float *restrict bias,    // (n) or NULL
                    __global const float *restrict plus,    // (m, n) or NULL
                    __global float *restrict c, const int m, const int n, const int k)
{
    __local float packed[DEPTH * COLUMNS];
    const int col0 = get_global_id(0) * COLUMNS;
    const int first = get_global_id(1) * ROWS * STACK, last = min(first + ROWS * STACK, m);
    if (col0 + COLUMNS > n) {                      // the last columns, fewer than a block has
        packed_panel(a, k, 1, b, n, 1, bias, plus, c, packed, first, last, col0, n, k);
        return;
    }
    for (int p0 = 0; p0 < k; p0 += DEPTH)
        for (int row = first; row < last; row += ROWS) {
            const int at = row * n + col0;
            block(a + row * k + p0, k, 1, b + p0 * n + col0, n,
                  bias && !p0 ? bias + col0 : 0, p0 ? c + at : plus ? plus + at : 0, c + at,
                  min(k - p0, DEPTH), last - row, COLUMNS, n);
        }
}

// c = a b^T + bias + plus, where b lies (n, k): what the gradient of a layer's input needs. A block
// wants 16 neighbours of a row of b^T, and they lie k apart. So a panel is turned as it is packed,
// and then used STACK x VECTORS times: turning takes as long in wide registers as in narrow ones.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_packed(__global const float *restrict a, __global const float *restrict b,
                   __global const float *restrict bias,    // (n) or NULL
                   __global const float *restrict plus,    // (m, n) or NULL
                   __global float *restrict c, const int m, const int n, const int k)
{
    __local float packed[DEPTH * COLUMNS];
    const int col0 = get_global_id(0) * COLUMNS;
    const int high = ROWS * STACK * VECTORS;
    const int first = get_global_id(1) * high, last = min(first + high, m);
    packed_panel(a, k, 1, b, 1, k, bias, plus, c, packed, first, last, col0, n, k);
}

// c = c + a^T b, where a lies (k, m): what the gradient of a weight needs. A block wants ROWS
// neighbours of each row of a, and the rows lie m apart, where they push each other out of the
// nearest cache. So PANEL columns of a are packed, and then used for SPAN columns of b.
#define PANEL (ROWS * ((STACK + 1) / 2))
#define SPAN (COLUMNS * ((127 + COLUMNS) / COLUMNS))

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void matmul_packed_add(__global const float *restrict a, __global const float *restrict b,
                       __global float *restrict c, const int m, const int n, const int k)
{
    __local float packed[DEPTH * (PANEL > COLUMNS ? PANEL : COLUMNS)];
    const int first = get_global_id(1) * PANEL, last = min(first + PANEL, m);
    const int start = get_global_id(0) * SPAN, end = min(start + SPAN, n);
    int col0 = start;
    for (int p0 = 0; p0 < k; p0 += DEPTH) {
        const int steps = min(k - p0, DEPTH);
        for (int p = 0; p < steps; ++p) {
            __global const float *from = a + (p0 + p) * m + first;
            __local float *to = packed + p * PANEL;
            int r = 0;
            for (; r + 8 <= last - first; r += 8)
                *(__local float8u *)(to + r) = *(__global const float8u *)(from + r);
            for (; r < last - first; ++r) to[r] = from[r];
        }
        for (col0 = start; col0 + COLUMNS <= end; col0 += COLUMNS)
            for (int row = first; row < last; row += ROWS) {
                __global float *to = c + row * n + col0;
                block_a(packed + row - first, 1, PANEL, b + p0 * n + col0, n, 0, to, to,
                        steps, last - row, COLUMNS, n);
            }
    }
    if (col0 < end)
        packed_panel(a, 1, m, b, n, 1, 0, c, c, packed, first, last, col0, n, k);
}
