package output

// A Group is the items with the same key.
type Group[K comparable, T any] struct {
	Key   K
	Items []T
}

// GroupBy groups items by a key, in the order in which the keys first occur.
func GroupBy[K comparable, T any](items []T, key func(T) K) []Group[K, T] {
	var groups []Group[K, T]
	at := map[K]int{}
	for _, item := range items {
		k := key(item)
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k] = i
			groups = append(groups, Group[K, T]{Key: k})
		}
		groups[i].Items = append(groups[i].Items, item)
	}
	return groups
}
