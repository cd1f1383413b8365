package inventory

import (
	"io"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// An inventory is limited in what it becomes: neither its text nor its items may fill the memory.
func TestInflatedInventoriesAreRefused(t *testing.T) {
	tests := map[string]string{
		"spaces": `{"items":[` + strings.Repeat(" ", 80<<20) + "]}",
		"items":  `{"items":[{}` + strings.Repeat(",{}", 1<<18) + "]}",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			raw, err := ledger.Compress(func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := newUnpacking().unpack(raw); !connection.IsExceeded(err) {
				t.Errorf("%d bytes: %v", len(raw), err)
			}
		})
	}
}
