package daemon

import (
	"strings"
	"testing"
)

// An authenticated user cannot act under another name, and unknown fields are errors.
func TestOrdersAreReadStrictly(t *testing.T) {
	tests := map[string]struct{ by, body, want, fault string }{
		"claimed":          {"", `{"subject":"crp/web","by":"alice"}`, "alice", ""},
		"unsaid":           {"", `{"subject":"crp/web"}`, "somebody on the daemon's machine", ""},
		"known":            {"bob", `{"subject":"crp/web","by":"alice"}`, "bob", ""},
		"a typo":           {"", `{"subject":"crp/web","untill":"x"}`, "", `unknown field "untill"`},
		"no JSON":          {"", `subject=crp/web`, "", "the body is not an order"},
		"a wrong duration": {"", `{"for":"soon"}`, "", "the body is not an order"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := readOrder(test.by, []byte(test.body))
			if test.fault == "" && (err != nil || o.By != test.want) || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}
