package status

import (
	"fmt"
	"strings"
	"testing"
)

func TestUnknownErrorListsExistingNames(t *testing.T) {
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprintf("m%02d", i))
	}
	tests := map[string]struct {
		exist []string
		want  string
	}{
		"nothing": {nil, "there is no cluster x, and no other either"},
		"some":    {[]string{"a", "b"}, "there is no cluster x; there are a, b"},
		"many":    {many, "there is no cluster x; there are " + strings.Join(many[:20], ", ") + " and 5 more"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (&UnknownError{What: "cluster", Name: "x", Exist: test.exist}).Error(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
