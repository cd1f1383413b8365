package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
)

// No packed chart causes a panic, and one that is accepted unpacks to no more than it may, also if it has others in it.
func FuzzPacked(f *testing.F) {
	f.Add([]byte(packed(f, 1)))
	f.Add([]byte(packed(f, 3, "templates/a.yaml", "a: {{ .Chart.Name }}")))
	f.Add([]byte(packed(f, 2, "charts/x.tgz", "no archive")))
	const maxSize, maxCount = 1 << 16, 20
	f.Fuzz(func(t *testing.T, data []byte) {
		u := unpacking{left: maxSize, files: maxCount}
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
		if sum > maxSize || n > maxCount {
			t.Errorf("%d files of %d bytes", n, sum)
		}
		c := readChart(t, map[string]string{"charts/db-1.0.0.tgz": string(data)})
		_, _ = c.Render(usual) // it may have anything in it
	})
}

// packed returns a packed chart that is packed in others, with files by their names and texts, or links.
func packed(t testing.TB, levels int, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	write := func(name, text string) {
		header := &tar.Header{Name: "db/" + name, Mode: 0o644}
		if to, is := strings.CutPrefix(text, "link to "); is {
			header.Typeflag, header.Linkname, text = tar.TypeSymlink, to, ""
		}
		header.Size = int64(len(text))
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n")
	for i := 0; i < len(files)-1; i += 2 {
		write(files[i], files[i+1])
	}
	if levels > 1 {
		write("./charts/db-1.0.0.tgz", packed(t, levels-1))
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A packed chart may have another one in it.
func TestPacked(t *testing.T) {
	c := readChart(t, map[string]string{"charts/db-1.0.0.tgz": packed(t, 3, "templates/a.yaml", "a: {{ .Chart.Name }}")})
	out, err := c.Render(usual)
	if err != nil || len(out) != 1 || string(out[0].Text) != "a: db\n" || out[0].Path != "web/charts/db-1.0.0.tgz" {
		t.Errorf("%+v %v", out, err)
	}
}
