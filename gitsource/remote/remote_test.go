package remote

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

// The meter counts every byte, and has a lower limit while references are listed.
func TestTheMeterCountsExactly(t *testing.T) {
	for _, test := range []struct {
		list, FetchRequest int64
		fetching           bool
		says               string
	}{
		{1000, 2000, false, ""},
		{999, 2000, false, "in a list of references"},
		{999, 1000, true, ""},
		{999, 999, true, "(limits.fetchBytes)"},
		{5000, 999, false, "(limits.fetchBytes)"},
	} {
		m := newMeter(Limits{ListBytes: test.list, FetchBytes: test.FetchRequest})
		if test.fetching {
			m.fetch()
		}
		_, err := io.ReadAll(metered{io.NopCloser(strings.NewReader(strings.Repeat("x", 1000))), m})
		if m.total() != 1000 {
			t.Errorf("counted %d", m.total())
		}
		if test.says == "" && err != nil {
			t.Errorf("%+v: %v", test, err)
		} else if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if !errors.Is(m.explain(io.ErrUnexpectedEOF), objects.ErrTooLarge) {
				t.Error("the cause is lost")
			}
		}
	}
}
