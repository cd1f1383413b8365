package charts

import (
	"io/fs"
	"testing"

	"github.com/gitfleet/gitfleet/test/chartserver"
)

// No archive causes a panic. What is unpacked stays within the limits, and its names are paths in the chart.
func FuzzUnpackChart(f *testing.F) {
	f.Add(chartserver.Chart("web", "1.0.0"))
	f.Add(chartserver.Pack("web", map[string]string{"Chart.yaml": "name: web\n", "charts/sub.tgz": "x", "a/b/c": ""}))
	limits := Limits{UnpackedBytes: 1 << 16, Files: 10}
	f.Fuzz(func(t *testing.T, packed []byte) {
		content, err := unpack(packed, limits)
		if err != nil {
			return
		}
		sum := 0
		for name, data := range content {
			if sum += len(data); !fs.ValidPath(name) || name == "." {
				t.Errorf("a file is called %q", name)
			}
		}
		if len(content) > limits.Files || int64(sum) > limits.UnpackedBytes {
			t.Errorf("%d files of %d bytes", len(content), sum)
		}
		files := &files{listing: list("", content), content: content}
		err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, err = fs.ReadFile(files, name)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
