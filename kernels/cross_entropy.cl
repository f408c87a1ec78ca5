// Cross-entropy: how surprised the model is by the token that really comes next, on average.
//
//   loss of a row = log( sum_v exp(logit_v) ) - logit_target
//   loss          = sum over the counted rows / count
//
// A target of -1 means: this row does not count (padding, or a question that need not be learned).
// The largest logit is taken out of the exponentials, as in softmax.cl.
//
// Backward:   dlogit_v = ( exp(logit_v - log_sum) - [v is the target] ) / count,  0 where not counted
//
// Index names: row is one place (batch and time), v is an entry of the vocabulary.

typedef float8 float8u __attribute__((aligned(4)));     // may start at any float

float sum8(float8 x)
{
    const float4 a = x.lo + x.hi;
    return (a.x + a.z) + (a.y + a.w);
}

// One work-item, one row: its loss, and the logarithm that backward needs again.
__kernel void cross_entropy_rows(__global const float *restrict logits,   // (rows, V)
                                 __global const int *restrict targets,    // (rows)
                                 __global float *restrict row_loss,       // (rows)
                                 __global float *restrict log_sum,        // (rows)
                                 const int rows, const int V)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    const int target = targets[row];
    row_loss[row] = 0.0f;
    log_sum[row] = 0.0f;
    if (target < 0) return;
    __global const float *in = logits + row * V;

    float largest = in[0];
    int v = 0;
    if (V >= 8) {
        float8 larger = *(__global const float8u *)in;
        for (; v + 8 <= V; v += 8) larger = fmax(larger, *(__global const float8u *)(in + v));
        const float4 four = fmax(larger.lo, larger.hi);
        largest = fmax(fmax(four.x, four.y), fmax(four.z, four.w));
    }
    for (; v < V; ++v) largest = fmax(largest, in[v]);

    float8 totals = 0.0f;
    v = 0;
    for (; v + 8 <= V; v += 8) totals += exp(*(__global const float8u *)(in + v) - largest);
    float total = sum8(totals);
    for (; v < V; ++v) total += exp(in[v] - largest);

    const float log_total = log(total);
    log_sum[row] = largest + log_total;
    row_loss[row] = log_total + (largest - in[target]);
}

// One work-item adds up all rows, in their order.
__kernel void cross_entropy_mean(__global const float *restrict row_loss,   // (rows)
                                 __global float *restrict loss,             // (1)
                                 const int rows, const int count)
{
    if (get_global_id(0) > 0) return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row) sum += row_loss[row];
    loss[0] = sum / count;
}

// One work-item, one row of dlogits.
__kernel void cross_entropy_backward(__global const float *restrict logits,   // (rows, V)
                                     __global const int *restrict targets,    // (rows)
                                     __global const float *restrict log_sum,  // (rows)
                                     __global float *restrict dlogits,        // (rows, V)
                                     const int rows, const int V, const int count)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    const int target = targets[row];
    __global const float *in = logits + row * V;
    __global float *out = dlogits + row * V;
    const float log_total = log_sum[row];

    int v = 0;
    if (target < 0) {
        for (; v < V; ++v) out[v] = 0.0f;
        return;
    }
    for (; v + 8 <= V; v += 8)
        *(__global float8u *)(out + v) = exp(*(__global const float8u *)(in + v) - log_total) / count;
    for (; v < V; ++v) out[v] = exp(in[v] - log_total) / count;
    out[target] -= 1.0f / count;
}
