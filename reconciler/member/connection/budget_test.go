package connection

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A list that never ends is given up, and one of as many objects as a large cluster has is not.
func TestEndlessListsAreGivenUp(t *testing.T) {
	tests := map[string]struct {
		kept  bool
		items int
		next  func(page int) string
		pages int
		err   string
	}{
		"a large list":            {false, 500, untilPage(2000), 2000, ""},
		"a large kept list":       {true, 500, untilPage(200), 200, ""},
		"an endless list":         {false, 1, untilPage(-1), MaxPages, "10000 pages of one list"},
		"an endless kept list":    {true, 500, untilPage(-1), MaxKeptItems/500 + 1, "200000 objects in one list"},
		"pages without an object": {false, 0, untilPage(-1), MaxEmptyPages, "100 consecutive pages"},
		"a long position":         {false, 1, func(int) string { return strings.Repeat("c", MaxPosition+1) }, 1, "16384 bytes for a position"},
		"the same page again":     {false, 0, func(int) string { return "again" }, 2, "consecutive pages"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			at := Listing{Kept: test.kept}
			for page := 1; ; page++ {
				more, err := at.Next(&metav1.ListMeta{Continue: test.next(page)}, test.items)
				if more {
					continue
				}
				if page != test.pages || IsExceeded(err) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("ended at page %d: %v", page, err)
				}
				return
			}
		})
	}
}

func untilPage(last int) func(int) string {
	return func(page int) string {
		if page == last {
			return ""
		}
		return fmt.Sprint("after ", page)
	}
}
