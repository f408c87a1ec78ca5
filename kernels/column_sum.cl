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
