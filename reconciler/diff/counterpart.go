package diff

import "slices"

// Values of counterparts that are no index.
const (
	unclear = -1
	isNew   = -2
)

// identities are fields by which people tell the items of a list apart, the most specific first.
var identities = []string{
	"name", "id", "key", "host", "hosts", "destination", "service", "path", "match", "matches", "resources", "from", "to", "ports",
}

// counterparts returns, for each item of a list that has no merge keys, the index of the live
// item that it stands for. Those are the same items apart from the fields that are left, items
// with the same identity, or else, if as many items remain on both sides, the next one in order.
// An item that is not there is isNew. It is unclear if several items may be meant.
func counterparts(want, have []any, left *left) []int {
	p := pairing{want: want, have: have, left: left, of: make([]int, len(want)), taken: make([]bool, len(have))}
	for i := range p.of {
		p.of[i] = unclear
	}
	if p.sameOrder() {
		p.pairRest()
		return p.of
	}
	p.pairUnique(p.agree)
	for _, key := range identities {
		p.pairUnique(func(i, j int) bool { return p.identify(key, i, j) })
	}
	for i := range min(len(want), len(have)) {
		if p.free(i) && !p.taken[i] && p.agree(i, i) {
			p.pair(i, i)
		}
	}
	p.pairUnique(p.leaves)
	p.pairRest()
	return p.of
}

// A pairing pairs the items of two lists.
type pairing struct {
	want, have []any
	left       *left
	of         []int // by index in want
	taken      []bool
}

func (p *pairing) free(i int) bool { return p.of[i] == unclear }

func (p *pairing) pair(i, j int) { p.of[i], p.taken[j] = j, true }

// agree reports whether two items are the same apart from what is left.
func (p *pairing) agree(i, j int) bool {
	part := p.left.item(i)
	return (part == nil || !part.whole) && covers(p.want[i], p.have[j], part)
}

// leaves reports whether the live item may have become what it is of an item that is left as a whole.
func (p *pairing) leaves(i, _ int) bool {
	part := p.left.item(i)
	return part != nil && part.whole
}

// sameOrder reports whether the lists have the same items in the same order.
func (p *pairing) sameOrder() bool {
	for i := range p.want {
		if len(p.want) != len(p.have) || !covers(p.want[i], p.have[i], p.left.item(i)) {
			return false
		}
	}
	return true
}

// identify reports whether two items have the same value in a field that is not left.
func (p *pairing) identify(key string, i, j int) bool {
	a, b := field(p.want[i], key), field(p.have[j], key)
	return a != nil && b != nil && p.left.item(i).at(key) == nil && covers(a, b, nil)
}

// pairUnique pairs items of which each is the only one that fits the other.
func (p *pairing) pairUnique(fits func(i, j int) bool) {
	for again := true; again; {
		again = false
		for i := range p.want {
			if !p.free(i) {
				continue
			}
			j, once := onlyOne(len(p.have), func(j int) bool { return !p.taken[j] && fits(i, j) })
			if !once {
				continue
			}
			if _, once = onlyOne(len(p.want), func(k int) bool { return p.free(k) && fits(k, j) }); once {
				p.pair(i, j)
				again = true
			}
		}
	}
}

// onlyOne returns the only number below n that fits.
func onlyOne(n int, fits func(int) bool) (found int, once bool) {
	for k := range n {
		if fits(k) {
			if once {
				return 0, false
			}
			found, once = k, true
		}
	}
	return found, once
}

// pairRest pairs the remaining items in order if both lists have the same number of them. Otherwise an
// item is new if no remaining live item has its identity.
func (p *pairing) pairRest() {
	var want, have []int
	for i := range p.want {
		if p.free(i) {
			want = append(want, i)
		}
	}
	for j := range p.have {
		if !p.taken[j] {
			have = append(have, j)
		}
	}
	for n, i := range want {
		switch {
		case len(want) == len(have):
			p.pair(i, have[n])
		case !slices.ContainsFunc(have, func(j int) bool { return !p.differ(i, j) }):
			p.of[i] = isNew
		}
	}
}

// differ reports whether two items have different identities.
func (p *pairing) differ(i, j int) bool {
	for _, key := range identities {
		if field(p.want[i], key) != nil && field(p.have[j], key) != nil && p.left.item(i).at(key) == nil {
			return !p.identify(key, i, j)
		}
	}
	return false
}

// field returns a field of a map, or nil.
func field(v any, key string) any {
	m, _ := v.(map[string]any)
	return m[key]
}
