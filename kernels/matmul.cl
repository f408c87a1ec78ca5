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
//   matmul_blocked      one work-item computes a block of c in registers, so each number that it loads is
//                       used many times: the version for CPUs
//   matmul_blocked_add  the same for a transposed a, which lies (k, m), adding to what c holds
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

// A vector that may start at any float, not only at multiples of 64 bytes.
typedef float16 float16u __attribute__((aligned(4)));
#define LOAD16(p) (*(__global const float16u *)(p))
#define STORE16(p, value) (*(__global float16u *)(p) = (value))

// One work-item, a block of c: ROWS rows by VECTORS vectors of 16 columns, kept in registers.
//
//                     b   p -> [ 16 columns ]
//   a  row 0 [p] ----------->  sum[0]            each number of a is used 16 times, each vector
//      row 1 [p] ----------->  sum[1]   ...      of b ROWS times, before the next one is loaded
//
// Twelve vector registers of sums hide the time that an addition takes: 6 rows of 16 columns fill
// them on a processor with registers of 8 numbers, 12 rows of 16 on one with registers of 16.
//
// A work-item goes down STACK such blocks, DEPTH steps of the sum at a time, so that the DEPTH by 16
// piece of b that they share is fetched from memory once and then found in the nearest cache. The
// order of every sum is that of the definition, whatever the sizes.
//
// a_row and a_col are the strides of a, so one text serves both a and its transpose. The sums start
// from bias and plus, where they are given: the bias of a column, and what a residual connection or
// c itself already holds. Rows past the end repeat the last row and are not stored; columns past the
// last full block go one by one.
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

// Adds the steps p0 .. p1 of the sum to one block.
void block(__global const float *restrict a, __global const float *restrict b,
           __global const float *bias, __global const float *plus, __global float *c,
           const int row0, const int col0, const int p0, const int p1,
           const int m, const int n, const int a_row, const int a_col)
{
    float16 sum[ROWS][VECTORS];
    int at[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = min(row0 + r, m - 1);
        at[r] = row * a_row;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const int col = col0 + 16 * v;
            sum[r][v] = bias ? LOAD16(bias + col) : 0.0f;
            if (plus) sum[r][v] += LOAD16(plus + row * n + col);
        }
    }
    for (int p = p0; p < p1; ++p) {
        float16 line[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) line[v] = LOAD16(b + p * n + col0 + 16 * v);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float x = a[at[r] + p * a_col];
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) sum[r][v] += x * line[v];
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (row0 + r >= m) break;
#pragma unroll
        for (int v = 0; v < VECTORS; ++v)
            STORE16(c + (row0 + r) * n + col0 + 16 * v, sum[r][v]);
    }
}

void stack(__global const float *restrict a, __global const float *restrict b,
           __global const float *bias, __global const float *plus, __global float *c,
           const int m, const int n, const int k, const int a_row, const int a_col)
{
    const int col0 = get_global_id(0) * COLUMNS;
    const int first = get_global_id(1) * ROWS * STACK, last = min(first + ROWS * STACK, m);
    if (col0 + COLUMNS <= n) {
        for (int p0 = 0; p0 < k; p0 += DEPTH)
            for (int row0 = first; row0 < last; row0 += ROWS)
                block(a, b, p0 ? 0 : bias, p0 ? c : plus, c,
                      row0, col0, p0, min(p0 + DEPTH, k), m, n, a_row, a_col);
        return;
    }
    for (int row = first; row < last; ++row)
        for (int col = col0; col < n; ++col) {
            float sum = bias ? bias[col] : 0.0f;
            if (plus) sum += plus[row * n + col];
            for (int p = 0; p < k; ++p) sum += a[row * a_row + p * a_col] * b[p * n + col];
            c[row * n + col] = sum;
        }
}

// c = a b + bias + plus: plus is what a residual connection brings.
__kernel void matmul_blocked(__global const float *restrict a, __global const float *restrict b,
                             __global const float *restrict bias,    // (n) or NULL
                             __global const float *restrict plus,    // (m, n) or NULL
                             __global float *restrict c, const int m, const int n, const int k)
{
    stack(a, b, bias, plus, c, m, n, k, k, 1);
}

// c = c + a^T b, where a lies (k, m): what the gradient of a weight needs.
__kernel void matmul_blocked_add(__global const float *restrict a, __global const float *restrict b,
                                 __global float *restrict c, const int m, const int n, const int k)
{
    stack(a, b, 0, c, c, m, n, k, 1, m);
}
