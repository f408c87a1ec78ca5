// Two measurements that say what a device can do at best: how many bytes it moves, and how many
// additions and multiplications it makes. `llmcl bench` draws every kernel against them.

typedef float16 float16u __attribute__((aligned(4)));     // may start at any float

// One work-item copies sixteen numbers: 128 bytes move.
__kernel void roofline_copy(__global const float *restrict x, __global float *restrict y,
                            const int n)
{
    const int i = get_global_id(0) * 16;
    if (i + 16 > n) return;
    *(__global float16u *)(y + i) = *(__global const float16u *)(x + i);
}

// One work-item makes `rounds` times 12 x 16 multiply-adds, twelve independent chains of them, so
// that no addition waits for the one before. The result is written so that nothing is left out.
__kernel void roofline_arithmetic(__global float *restrict y, const int n, const int rounds,
                                  const float factor)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    float16 sum[12];
#pragma unroll
    for (int j = 0; j < 12; ++j) sum[j] = (float16)(i + j);
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < 12; ++j) sum[j] = sum[j] * factor + 1.0f;
    }
    float16 total = 0.0f;
#pragma unroll
    for (int j = 0; j < 12; ++j) total += sum[j];
    y[i] = total.s0 + total.s7 + total.sf;
}
