package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

// No packed chart causes a panic, and one that is accepted unpacks to no more than it may, also if it has others in it.
func FuzzPacked(f *testing.F) {
	f.Add([]byte(packed(f, 1)))
	f.Add([]byte(packed(f, 3, "templates/a.yaml", "a: {{ .Chart.Name }}")))
	f.Add([]byte(packed(f, 2, "charts/x.tgz", "no archive")))
	const most, mostOfThem = 1 << 16, 20
	f.Fuzz(func(t *testing.T, data []byte) {
		u := unpacking{left: most, files: mostOfThem}
		if u.archive(bytes.NewReader(data), 1) != nil {
			return
		}
		sum, n := int64(0), 0
		unzipped, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for files := tar.NewReader(unzipped); ; n++ {
			_, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			size, err := io.Copy(io.Discard, files)
			if sum += size; err != nil {
				t.Fatal(err)
			}
		}
		if sum > most || n > mostOfThem {
			t.Errorf("%d files of %d bytes", n, sum)
		}
		c := readChart(t, map[string]string{"charts/db-1.0.0.tgz": string(data)})
		_, _ = c.Render(usual) // it may have anything in it
	})
}
