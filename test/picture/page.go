package picture

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"html"
	"os"
	"os/exec"
	"path/filepath"
)

// style is the style sheet of a page, of plain colors and sizes such as forges have. Those of the parts of a diff have the names
// that Gitea gives them.
const style = `body { font: 14px/1.5 Helvetica, Arial, "DejaVu Sans", sans-serif; color: #1f2328; margin: 24px 32px }
h1 { font-size: 24px; font-weight: 400; margin: 0 0 16px } h3 { font-size: 17px }
main { border: 1px solid #d0d7de; border-radius: 6px; padding: 4px 16px }
code, pre { font: 12px "DejaVu Sans Mono", monospace; background: #f0f1f3; border-radius: 4px }
code { padding: 2px 5px } pre { padding: 12px } pre code { padding: 0; background: none }
a { color: #0969da; text-decoration: none } a code { color: #0969da }
.gd { background: #ffd7d5 } .gi { background: #d2f4d9 } .gu { color: #6639ba }`

// Page returns a web page with a title and what a forge made of Markdown.
func Page(title, content string) string {
	return "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><style>" + style + "</style></head><body><h1>" + html.EscapeString(title) + "</h1><main>" + content + "</main></body></html>\n"
}

// Photograph returns the picture of a page in a window of a browser, as PNG. The browser is Chromium, or one with the same flags.
func Photograph(ctx context.Context, browser, page string, width, height int) ([]byte, error) {
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, photo := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+filepath.Join(dir, "data"),
		fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+photo, "file://"+file)
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", browser, err, out)
	}
	return os.ReadFile(photo)
}

// A picture in PNG begins with a signature and its size; a text of the picture may follow.
const (
	headLength = 8 + 25
	sourceKey  = "Source\x00"
)

// WithSource returns a picture in PNG that says what it was made of. IsOf tells whether that has changed.
func WithSource(photo []byte, source string) ([]byte, error) {
	if len(photo) < headLength {
		return nil, fmt.Errorf("a picture of %d bytes is no PNG", len(photo))
	}
	chunk := []byte("tEXt" + sourceKey + hash(source))
	out := bytes.Clone(photo[:headLength])
	out = binary.BigEndian.AppendUint32(out, uint32(len(chunk)-4))
	out = append(out, chunk...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
	return append(out, photo[headLength:]...), nil
}

// IsOf reports whether a picture says that it was made of a source.
func IsOf(photo []byte, source string) bool {
	return bytes.Contains(photo, []byte(sourceKey+hash(source)))
}

func hash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:])
}
