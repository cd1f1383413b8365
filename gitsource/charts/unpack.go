package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

// unpack returns the files of a packed chart, by their paths in the directory that has Chart.yaml. Whatever Helm would refuse,
// follow or drop silently is an error.
func unpack(packed []byte, limits Limits) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("not a packed chart: %w", err)
	}
	tooLarge := fmt.Errorf("unpacked it takes more than %s; raise limits.buildInput", limit.Size(limits.UnpackedBytes))
	stream := &io.LimitedReader{R: unzipped, N: limits.UnpackedBytes + 1<<20} // headers and padding are no files
	content, left := map[string][]byte{}, limits.UnpackedBytes
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		switch {
		case stream.N <= 0:
			return nil, tooLarge
		case errors.Is(err, io.EOF):
			if content["Chart.yaml"] == nil {
				return nil, errors.New("not a packed chart: it has no Chart.yaml in its first directory")
			}
			return content, nil
		case err != nil:
			return nil, fmt.Errorf("not a packed chart: %w", err)
		case header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeXGlobalHeader:
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%q is not a regular file; a chart must not contain links or devices", header.Name)
		}
		name, err := fileName(header.Name)
		if err != nil {
			return nil, err
		}
		if left -= header.Size; left < 0 {
			return nil, tooLarge
		}
		if content[name] != nil {
			return nil, fmt.Errorf("%q is in it twice", header.Name)
		}
		if len(content) >= limits.Files {
			return nil, fmt.Errorf("it has more than %d files", limits.Files)
		}
		data, err := io.ReadAll(archive)
		switch {
		case stream.N <= 0:
			return nil, tooLarge
		case err != nil:
			return nil, fmt.Errorf("not a packed chart: %w", err)
		}
		content[name] = append([]byte{}, data...)
	}
}

// deepest is how deep directories are nested at most.
const deepest = 20

// fileName returns the path of a file without the first directory, which has the name of the chart.
func fileName(name string) (string, error) {
	_, within, found := strings.Cut(strings.TrimPrefix(name, "./"), "/")
	switch {
	case strings.HasPrefix(within, "../") || within == ".." || strings.HasPrefix(name, "../"):
		return "", fmt.Errorf("%q is outside the chart", name)
	case !found || within == "" || path.Clean(within) != within || path.IsAbs(name) || strings.ContainsAny(name, "\\:\x00"):
		return "", fmt.Errorf("%q is no path of a file in the directory of a chart", name)
	case strings.Count(within, "/") > deepest:
		return "", fmt.Errorf("%q is nested deeper than %d directories", name, deepest)
	}
	return within, nil
}
