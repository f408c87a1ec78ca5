// Every element gets the same value. One work-item, one element.
__kernel void fill(__global float *restrict x, const float value, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    x[i] = value;
}
