// How often each pair of neighbours occurs: the question that BPE asks before every merge.
//
//   ids     5 7 5 7 -1 5        (-1 separates pieces of text; no pair crosses it)
//   counts  [5][7] = 2   [7][5] = 1
//
// Many work-items may count the same pair at once, so the increment must be atomic. Whole numbers
// add up to the same total in any order, so the result is the same every time; a float's would not.
//
// One work-item, one pair of neighbours.
__kernel void pair_counts(__global const int *restrict ids,         // (n)
                          __global int *restrict counts,            // (V, V), starts at 0
                          const int n, const int V)
{
    const int i = get_global_id(0);
    if (i + 1 >= n) return;
    const int left = ids[i], right = ids[i + 1];
    if (left < 0 || right < 0) return;
    atomic_inc(&counts[left * V + right]);
}
