package diff

import (
	"slices"
	"strconv"

	"github.com/gitfleet/gitfleet/placement/api"
)

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

// A left is a position in an object with fields that are left to others.
type left struct {
	// whole says that the whole value is left; otherwise only parts of it are, by the keys of a
	// map or the indexes of a list.
	whole bool
	parts map[string]*left
}

// leftAt returns the fields at some JSON pointers.
func leftAt(pointers []string) *left {
	root := &left{}
	for _, pointer := range pointers {
		at := root
		for _, key := range api.SplitPointer(pointer) {
			if at.parts == nil {
				at.parts = map[string]*left{}
			}
			if at.parts[key] == nil {
				at.parts[key] = &left{}
			}
			at = at.parts[key]
		}
		at.whole = true
	}
	return root
}

// at returns the part at a key; nil if nothing of it is left.
func (l *left) at(key string) *left {
	if l == nil {
		return nil
	}
	return l.parts[key]
}

// item returns the part at an index; nil if nothing of it is left.
func (l *left) item(i int) *left {
	if l == nil {
		return nil
	}
	return l.parts[strconv.Itoa(i)]
}

// all reports whether nothing of a value remains without the fields that are left.
func (l *left) all(v any) bool {
	if l == nil || l.whole {
		return l != nil
	}
	fields, _ := v.(map[string]any)
	for key, field := range fields {
		if !l.at(key).all(field) {
			return false
		}
	}
	return len(fields) > 0
}

// in reports whether a map has any field that is left.
func (l *left) in(fields map[string]any) bool {
	for key, part := range l.parts {
		if value := fields[key]; value != nil {
			below, isMap := value.(map[string]any)
			if part.whole || isMap && part.in(below) {
				return true
			}
		}
	}
	return false
}

// pointers lists the JSON pointers of the fields below a path.
func (l *left) pointers(path string) []string {
	if l.whole {
		return []string{path}
	}
	var out []string
	for key, part := range l.parts {
		out = append(out, part.pointers(path+"/"+api.EscapeKey(key))...)
	}
	return out
}

// covers reports whether have has all values of want, apart from fields that are left: maps may
// have more fields, and lists must have the same items. A false result may be wrong. The check is
// fast and makes the full comparison unnecessary for most objects.
func covers(want, have any, left *left) bool {
	if left != nil && left.whole {
		return true
	}
	switch want := want.(type) {
	case map[string]any:
		fields, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range want {
			part := left.at(key)
			there, set := fields[key]
			switch {
			case value == nil, !set && part.all(value):
			case !set || !covers(value, there, part):
				return false
			}
		}
		return true
	case []any:
		items, ok := have.([]any)
		if !ok || len(want) != len(items) {
			return false
		}
		for i, item := range want {
			if !covers(item, items[i], left.item(i)) {
				return false
			}
		}
		return true
	default:
		return scalar(have) && normalized(want) == normalized(have)
	}
}

// empty has the empty values, as printed, that many kinds do not store.
var empty = map[string]bool{"": true, "false": true, "0": true, "[]": true, "map[]": true}
