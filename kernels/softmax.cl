// Softmax turns a row of scores into shares: positive, and one in total.
//
//   share_j = exp(score_j - largest) / sum_k exp(score_k - largest)
//
// Only differences count, so the largest score is taken away first and no exponential overflows.
//
// The causal form is for attention: row i of a sequence may look at columns 0 .. first + i, the
// places that are not in its future. What is masked gets the share 0 and is never exponentiated.
//
//        columns 0 1 2 3        first = 0, T = 4
//   row 0        x . . .        x  may be seen
//   row 1        x x . .        .  the future: share 0
//   row 2        x x x .
//   row 3        x x x x
//
// Backward, from the shares p:   dscore_j = p_j ( dp_j - sum_k p_k dp_k )
//
// Index names: row counts every row of every head and batch; j is the column.

// One work-item, one row; every column counts.
__kernel void softmax_forward(__global const float *restrict scores,   // (rows, n)
                              __global float *restrict shares,         // (rows, n)
                              const int rows, const int n)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *in = scores + row * n;
    __global float *out = shares + row * n;

    float largest = in[0];
    for (int j = 1; j < n; ++j) largest = fmax(largest, in[j]);

    float total = 0.0f;
    for (int j = 0; j < n; ++j) {
        const float e = exp(in[j] - largest);
        out[j] = e;
        total += e;
    }
    for (int j = 0; j < n; ++j) out[j] /= total;
}

// A vector that may start at any float, not only at multiples of 64 bytes.
typedef float8 float8u __attribute__((aligned(4)));

// One work-item, one row; row i of a sequence sees columns 0 .. first + i. Eight exponentials
// at a time: on a CPU they cost about as much as one.
__kernel void softmax_causal(__global const float *restrict scores,    // (sequences, T, n)
                             __global float *restrict shares,          // (sequences, T, n)
                             const int rows, const int T, const int n, const int first)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *in = scores + row * n;
    __global float *out = shares + row * n;
    const int seen = first + row % T + 1;          // how many columns are not in the future

    float largest = in[0];
    for (int j = 1; j < seen; ++j) largest = fmax(largest, in[j]);

    float total = 0.0f;
    int j = 0;
    for (; j + 8 <= seen; j += 8) {
        *(__global float8u *)(out + j) = exp(*(__global const float8u *)(in + j) - largest);
        for (int l = 0; l < 8; ++l) total += out[j + l];
    }
    for (; j < seen; ++j) {
        const float e = exp(in[j] - largest);
        out[j] = e;
        total += e;
    }
    for (j = 0; j < seen; ++j) out[j] /= total;
    for (; j < n; ++j) out[j] = 0.0f;
}

// One work-item, one row. Masked columns have the share 0, so their gradient is 0 by itself.
__kernel void softmax_backward(__global const float *restrict shares,   // (rows, n)
                               __global const float *restrict dshares,  // (rows, n)
                               __global float *restrict dscores,        // (rows, n)
                               const int rows, const int n)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *p = shares + row * n;
    __global const float *dp = dshares + row * n;

    float dot = 0.0f;
    for (int j = 0; j < n; ++j) dot += p[j] * dp[j];
    for (int j = 0; j < n; ++j) dscores[row * n + j] = p[j] * (dp[j] - dot);
}
