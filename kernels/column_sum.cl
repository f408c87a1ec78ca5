// The gradient of a bias: it was added to every row, so its gradient is the sum down the rows.
// One work-item, one column. The sum is added to what is there.
__kernel void column_sum(__global const float *restrict x,     // (rows, n)
                         __global float *restrict sum,         // (n), added to
                         const int rows, const int n)
{
    const int col = get_global_id(0);
    if (col >= n) return;
    float total = 0.0f;
    for (int row = 0; row < rows; ++row) total += x[row * n + col];
    sum[col] += total;
}

// One work-item, eight columns at a time; fewer than eight go one by one. The version for CPUs.
typedef float8 float8u __attribute__((aligned(4)));      // may start at any float

// The hint says that the work is in vectors already: without it Intel's compiler packs work-items too.
__attribute__((vec_type_hint(float8)))
__kernel void column_sum_wide(__global const float *restrict x,     // (rows, n)
                              __global float *restrict sum,         // (n), added to
                              const int rows, const int n)
{
    const int col0 = get_global_id(0) * 8;
    if (col0 >= n) return;
    if (col0 + 8 <= n) {
        float8 total = 0.0f;
        for (int row = 0; row < rows; ++row)
            total += *(__global const float8u *)(x + row * n + col0);
        *(__global float8u *)(sum + col0) += total;
        return;
    }
    for (int col = col0; col < n; ++col) {
        float total = 0.0f;
        for (int row = 0; row < rows; ++row) total += x[row * n + col];
        sum[col] += total;
    }
}
