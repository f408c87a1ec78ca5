// Embedding: every token id picks a row of a table; its position picks a row of another; they add up.
//
//   ids      (B, T)   3 1 3            tokens (V, C)   positions (P, C)
//   x     (B, T, C)   tokens[3] + positions[first + 0]
//                     tokens[1] + positions[first + 1]
//                     tokens[3] + positions[first + 2]
//
// Backward: a row of the table collects the gradients of every place that looked it up. A token
// may stand at many places, so one work-item owns one row of the table and gathers; if each place
// scattered its gradient instead, two work-items could add to one row at once and lose an update.
//
// Index names: b batch, t time, c channel, v row of the vocabulary.

// One work-item, one element of x.
__kernel void embedding_forward(__global const int *restrict ids,           // (B, T)
                                __global const float *restrict tokens,      // (V, C)
                                __global const float *restrict positions,   // (P, C)
                                __global float *restrict x,                 // (B, T, C)
                                const int B, const int T, const int C, const int first)
{
    const int c = get_global_id(0);
    const int place = get_global_id(1);            // b * T + t
    if (c >= C || place >= B * T) return;
    const int t = place % T;
    x[place * C + c] = tokens[ids[place] * C + c] + positions[(first + t) * C + c];
}

// One work-item, `width` elements of one table row; it walks over all places and adds where its id
// stands. A CPU takes whole rows, so the walk is done once; a GPU takes one element, so that
// neighbouring work-items read neighbouring addresses.
__kernel void embedding_backward_tokens(__global const int *restrict ids,   // (B, T)
                                        __global const float *restrict dx,  // (B, T, C)
                                        __global float *restrict dtokens,   // (V, C), added to
                                        const int places, const int V, const int C,
                                        const int width)
{
    const int c0 = get_global_id(0) * width;
    const int v = get_global_id(1);
    if (c0 >= C || v >= V) return;
    const int end = min(c0 + width, C);
    for (int place = 0; place < places; ++place)
        if (ids[place] == v)
            for (int c = c0; c < end; ++c) dtokens[v * C + c] += dx[place * C + c];
}

// One work-item, one element of one position's row; it adds over the batch.
__kernel void embedding_backward_positions(__global const float *restrict dx,      // (B, T, C)
                                           __global float *restrict dpositions,    // (P, C), added to
                                           const int B, const int T, const int C)
{
    const int c = get_global_id(0);
    const int t = get_global_id(1);
    if (c >= C || t >= T) return;
    float sum = dpositions[t * C + c];
    for (int b = 0; b < B; ++b)
        sum += dx[(b * T + t) * C + c];
    dpositions[t * C + c] = sum;
}
