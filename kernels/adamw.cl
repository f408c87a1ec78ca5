// AdamW (Loshchilov and Hutter 2019): each weight has its own step size, from two running averages.
//
//   m = m + take1 (g - m)                where the gradient points, on average
//   v = v + take2 (g^2 - v)              how large it is, on average
//   w = w - rate ( m' / (sqrt(v') + epsilon) + decay w )      m' = m / (1 - beta1^step), v' likewise
//
// take is 1 - beta, computed in double on the host: in float32, 1 - 0.999 is right to four digits.
// m and v start at 0 and are too small at first; m' and v' correct that. Decay pulls a weight
// towards 0 directly, not through m and v (that is the W). It acts on the first n_decay elements,
// the matrices; biases, norms and positions stand behind them.
//
// status comes from global_norm.cl: [norm, clip, finite, loss, bad step]. The gradient is scaled by
// clip, and where the loss or the gradient is not finite nothing is written at all.
//
// One work-item, one weight. correction1 = 1 / (1 - beta1^step), correction2 = 1 / (1 - beta2^step).
__kernel void adamw(__global float *restrict w, __global const float *restrict grad,
                    __global float *restrict m, __global float *restrict v,
                    __global const float *restrict status,
                    const float rate, const float take1, const float take2, const float epsilon,
                    const float decay, const float correction1, const float correction2,
                    const int n_decay, const int n)
{
    const int i = get_global_id(0);
    if (i >= n || status[2] == 0.0f) return;
    const float g = grad[i] * status[1];
    const float m_new = m[i] + take1 * (g - m[i]);
    const float v_new = v[i] + take2 * (g * g - v[i]);
    const float pull = i < n_decay ? decay * w[i] : 0.0f;
    m[i] = m_new;
    v[i] = v_new;
    w[i] -= rate * (m_new * correction1 / (sqrt(v_new * correction2) + epsilon) + pull);
}

// One work-item, eight weights at a time; the last one takes what is left. The version for CPUs. (A
// GPU wants neighbors to read neighboring addresses: 124 million weights take 0.84 ms one by one on an
// NVIDIA H200, near the speed of a copy, and 1.74 ms by eights.)
typedef float8 float8u __attribute__((aligned(4)));      // may start at any float
#define AT8(p) (*(__global float8u *)(p))

// The hint says that the work is in vectors already: without it Intel's compiler packs work-items too.
__attribute__((vec_type_hint(float8)))
__kernel void adamw_wide(__global float *restrict w, __global const float *restrict grad,
                         __global float *restrict m, __global float *restrict v,
                         __global const float *restrict status,
                         const float rate, const float take1, const float take2,
                         const float epsilon, const float decay,
                         const float correction1, const float correction2,
                         const int n_decay, const int n)
{
    const int i0 = get_global_id(0) * 8;
    if (i0 >= n || status[2] == 0.0f) return;
    const float clip = status[1];
    // A vector that lies across the end of the decaying part, or of everything, goes one by one.
    if (i0 + 8 <= n && (i0 + 8 <= n_decay || i0 >= n_decay)) {
        const float8 g = *(__global const float8u *)(grad + i0) * clip, weight = AT8(w + i0);
        const float8 m_new = AT8(m + i0) + take1 * (g - AT8(m + i0));
        const float8 v_new = AT8(v + i0) + take2 * (g * g - AT8(v + i0));
        const float8 pull = (i0 < n_decay ? decay : 0.0f) * weight;
        AT8(m + i0) = m_new;
        AT8(v + i0) = v_new;
        AT8(w + i0) = weight - rate * (m_new * correction1
                                       / (sqrt(v_new * correction2) + epsilon) + pull);
        return;
    }
    for (int i = i0; i < min(i0 + 8, n); ++i) {
        const float g = grad[i] * clip;
        const float m_new = m[i] + take1 * (g - m[i]);
        const float v_new = v[i] + take2 * (g * g - v[i]);
        const float pull = i < n_decay ? decay * w[i] : 0.0f;
        m[i] = m_new;
        v[i] = v_new;
        w[i] -= rate * (m_new * correction1 / (sqrt(v_new * correction2) + epsilon) + pull);
    }
}
