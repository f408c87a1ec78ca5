// Transpose: y[j][i] = x[i][j]. One work-item moves one 16 x 16 patch, so that both the reads and
// the writes touch whole lines of the memory cache.
__kernel void transpose(__global const float *restrict x,      // (rows, cols)
                        __global float *restrict y,            // (cols, rows)
                        const int rows, const int cols)
{
    const int i0 = get_global_id(0) * 16;
    const int j0 = get_global_id(1) * 16;
    for (int i = i0; i < min(i0 + 16, rows); ++i)
        for (int j = j0; j < min(j0 + 16, cols); ++j)
            y[j * rows + i] = x[i * cols + j];
}
