package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Items that only the live list has keep their position, and the others are in the wanted order.
func TestInterleave(t *testing.T) {
	tests := map[string]struct{ have, want, merged string }{
		"nothing":            {"", "", ""},
		"the same":           {"a b c", "a b c", "0:0 1:1 2:2"},
		"only there":         {"a b", "", "0:-1 1:-1"},
		"only wanted":        {"", "a b", "-1:0 -1:1"},
		"another in between": {"a x b", "a b", "0:0 1:-1 2:1"},
		"another at the end": {"a x", "a b", "0:0 1:-1 -1:1"},
		"a new one":          {"a x b", "a n b", "0:0 1:-1 -1:1 2:2"},
		"another order":      {"a b", "b a", "1:0 0:1"},
		"order and another":  {"a x b y", "b a", "1:-1 2:0 3:-1 0:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range interleave(strings.Fields(test.have), strings.Fields(test.want)) {
				got = append(got, fmt.Sprintf("%d:%d", p.have, p.want))
			}
			if merged := strings.Join(got, " "); merged != test.merged {
				t.Errorf("merged %q, want %q", merged, test.merged)
			}
		})
	}
}

// The time to merge long lists grows linearly.
func TestInterleaveOfLongLists(t *testing.T) {
	const n = 100_000
	list := func(prefix string) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = prefix + strconv.Itoa(i)
		}
		return names
	}
	same, others := list("a"), list("b")
	reversed := slices.Clone(same)
	slices.Reverse(reversed)
	for name, want := range map[string][]string{"the same": same, "others": others, "reversed": reversed} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			interleave(same, want)
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
