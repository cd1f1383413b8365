package sharedlist

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func itemsOf(l List[int]) []int {
	out := []int{}
	for i, item := range l.All() {
		if l.At(i) != item {
			panic("At and All differ")
		}
		out = append(out, item)
	}
	return out
}

// Whatever is edited, a list has the items of a slice that is edited in the same way, and those it was made from stay as they were.
func TestAListIsASliceThatIsNeverChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lists []List[int]
		var want [][]int
		last, items := List[int]{}, []int{}
		for range rapid.IntRange(1, 8).Draw(t, "lists") {
			n := rapid.SampledFrom([]int{len(items), len(items), 0, 1, pageSize - 1, pageSize, pageSize + 1, 3 * pageSize, 100}).Draw(t, "items")
			e := last.Edit(n)
			items = append(slices.Clone(items), make([]int, max(0, n-len(items)))...)[:n]
			for range rapid.IntRange(0, min(n, 5)).Draw(t, "edits") {
				i, value := rapid.IntRange(0, n-1).Draw(t, "at"), rapid.Int().Draw(t, "value")
				items[i] = value
				e.Set(i, value)
			}
			last = e.List()
			lists, want = append(lists, last), append(want, items)
		}
		for i, l := range lists {
			if got := itemsOf(l); l.Len() != len(want[i]) || !slices.Equal(got, want[i]) {
				t.Fatalf("list %d has %d items %v, want %v", i, l.Len(), got, want[i])
			}
		}
	})
}

// An item is found by its order, wherever it is.
func TestSearch(t *testing.T) {
	var items []int
	for i := range 3 * pageSize / 2 {
		items = append(items, 2*i)
	}
	l := Of(items...)
	for want := -1; want <= l.Len()*2; want++ {
		got, found := l.Search(func(item int) int { return item - want })
		if exists := want >= 0 && want%2 == 0 && want < l.Len()*2; found != exists || exists && got != want {
			t.Fatalf("searching %d: %d, %t", want, got, found)
		}
	}
}

// A list shares what is equal in it: changing one item takes the memory of one page, whatever the length.
func TestAChangeCopiesOnePage(t *testing.T) {
	before := List[int]{}.Edit(10 * pageSize).List()
	e := before.Edit(before.Len())
	e.Set(3*pageSize+7, 1)
	after, copied := e.List(), 0
	for p := range after.pages {
		if &after.pages[p][0] != &before.pages[p][0] {
			copied++
		}
	}
	if copied != 1 {
		t.Errorf("%d of %d pages were copied, want 1", copied, len(after.pages))
	}
}

// A collector has the items that were added. If these are the items of the earlier slice, it is that slice.
func TestACollectorSharesWhatIsEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slice := func(name string) []int { return rapid.SliceOfN(rapid.IntRange(0, 1), 0, 4).Draw(t, name) }
		earlier, added := slice("earlier"), slice("added")
		was := slices.Clone(earlier)
		c := Like(earlier)
		for _, item := range added {
			c.Add(item)
		}
		got := c.Slice()
		if !slices.Equal(got, added) || !slices.Equal(earlier, was) {
			t.Fatalf("collected %v of %v; the earlier slice %v is %v", got, added, was, earlier)
		}
		if shares := len(got) > 0 && len(earlier) > 0 && &got[0] == &earlier[0]; shares != (len(added) > 0 && len(added) <= len(was) && slices.Equal(added, was[:len(added)])) {
			t.Fatalf("%v shares the memory of %v: %v", got, was, shares)
		}
		_ = append(got, 7)
		if !slices.Equal(earlier, was) {
			t.Fatal("appending to the result changes the earlier slice")
		}
	})
}
