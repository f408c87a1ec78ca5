// Two measurements that say what a device can do at best: how many bytes it moves, and how many
// additions and multiplications it makes. `llmcl bench` draws every kernel against them.

typedef float4 float4u __attribute__((aligned(4)));       // may start at any float
typedef float8 float8u __attribute__((aligned(4)));

// One work-item copies four numbers, as suits a GPU: neighbours read side by side.
__kernel void roofline_copy(__global const float *restrict x, __global float *restrict y,
                            const int n)
{
    const int i = get_global_id(0) * 4;
    if (i + 4 <= n) *(__global float4u *)(y + i) = *(__global const float4u *)(x + i);
    else for (int j = i; j < n; ++j) y[j] = x[j];
}

// One work-item copies eight numbers, as suits a CPU.
__kernel void roofline_copy_wide(__global const float *restrict x, __global float *restrict y,
                                 const int n)
{
    const int i = get_global_id(0) * 8;
    if (i + 8 <= n) *(__global float8u *)(y + i) = *(__global const float8u *)(x + i);
    else for (int j = i; j < n; ++j) y[j] = x[j];
}

// One work-item makes `rounds` times 12 x 16 multiply-adds, twelve independent chains of them, so
// that no addition waits for the one before. Every lane starts elsewhere and goes into the result, or
// a compiler would see that the work is done once for all.
__kernel void roofline_arithmetic(__global float *restrict y, const int n, const int rounds,
                                  const float factor)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    float16 sum[12];
#pragma unroll
    for (int j = 0; j < 12; ++j)
        sum[j] = (float)(i + j) + (float16)(0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f,
                                            9.0f, 10.0f, 11.0f, 12.0f, 13.0f, 14.0f, 15.0f);
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < 12; ++j) sum[j] = sum[j] * factor + 1.0f;
    }
    float16 total = 0.0f;
#pragma unroll
    for (int j = 0; j < 12; ++j) total += sum[j];
    y[i] = total.s0 + total.s1 + total.s2 + total.s3 + total.s4 + total.s5 + total.s6 + total.s7
         + total.s8 + total.s9 + total.sa + total.sb + total.sc + total.sd + total.se + total.sf;
}
