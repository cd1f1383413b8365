package chart

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// maxFiles and deepest limit the files of one chart, and how deep its directories are nested.
const (
	maxFiles = 5_000
	deepest  = 20
)

// maxPacked limits how many packed charts are in each other.
const maxPacked = 3

// errUnpacked says that packed charts are too large.
var errUnpacked = errors.New("too large")

// An unpacking is what the packed subcharts of a chart may still take. Helm unpacks them in memory, and those that are in them too.
type unpacking struct {
	// left are the bytes, negative if they were not enough, and files the number of files.
	left  int64
	files int
}

// archive takes what a packed chart takes, and all that are packed in it. It reads little more than that.
func (u *unpacking) archive(packed io.Reader, depth int) error {
	if depth > maxPacked {
		return fmt.Errorf("packed charts are in each other more than %d levels deep; unpack them", maxPacked)
	}
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	stream := &io.LimitedReader{R: unzipped, N: u.left + 1}
	for files := tar.NewReader(stream); ; {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF) && stream.N > 0:
			return nil
		case err != nil && stream.N <= 0:
			u.left = -1
			return errUnpacked
		case err != nil:
			return err
		}
		if u.left -= 512 + header.Size; u.left < 0 { // that of a sparse file is larger than what is in the archive
			u.left = -1
			return errUnpacked
		}
		if u.files--; u.files < 0 {
			return fmt.Errorf("with it the chart has more than %d files", maxFiles)
		}
		switch header.Typeflag {
		case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader:
		default: // the loader would read it as an empty file
			return fmt.Errorf("%q is not a regular file; a chart must not contain links or devices", header.Name)
		}
		// The loader leaves out the first directory.
		_, name, _ := strings.Cut(strings.ReplaceAll(header.Name, `\`, "/"), "/")
		if name = path.Clean(name); strings.HasPrefix(name, "../") || path.IsAbs(name) {
			return fmt.Errorf("%q is outside the chart", header.Name)
		}
		name = "/" + name
		if strings.Count(name, "/") > deepest {
			return fmt.Errorf("its directories are nested deeper than %d levels", deepest)
		}
		if path.Ext(name) == ".tgz" && strings.Contains(name, "/charts/") {
			if err := u.archive(files, depth+1); err != nil {
				return err
			}
		}
	}
}
