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
