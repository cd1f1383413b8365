package lockfile

import (
	"reflect"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

// No lock file causes a panic, and one without problems is the same once it is written again.
func FuzzRead(f *testing.F) {
	f.Add([]byte("bases:\n- {url: a, commit: " + hash + "}\ncharts:\n- {repository: 'oci://a', name: b, version: '1', resolved: '1', digest: '" + digest + "'}\n"))
	f.Add([]byte("bases: &a [{url: a, ref: *a}]\n---\n{}\n"))
	limits := limit.Limits{FileSize: 1 << 16, Documents: 3}.WithDefaults()
	f.Fuzz(func(t *testing.T, data []byte) {
		one, problems := Read(Name, data, limits)
		if len(problems) > 0 {
			return
		}
		text := one.Text()
		two, problems := Read(Name, text, limits)
		if len(problems) > 0 || !reflect.DeepEqual(two.Text(), text) {
			t.Errorf("%q becomes %q: %v", data, text, problems)
		}
	})
}
