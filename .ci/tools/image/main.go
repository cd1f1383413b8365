// Command image writes the container image of gitfleet as an archive in the layout of OCI,
// without a container engine, and prints its bill of materials as CycloneDX JSON:
//
//	image ARCHIVE VERSION UNIXTIME NOTICES BINARY [BINARY] > bom.json
//
// There is one image for the platform of each binary. It has no base image: besides the binary there are
// the notices of what it contains, the certificates of public authorities, and the name of its user. The
// same files, version and time give the same bytes.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/gitfleet/gitfleet/.ci/tools/bill"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) < 5 {
		return errors.New("write image ARCHIVE VERSION UNIXTIME NOTICES BINARY [BINARY]")
	}
	archive, version := args[0], args[1]
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	at := time.Unix(seconds, 0).UTC()
	roots, err := certificatesModule()
	if err != nil {
		return err
	}
	notices, err := os.ReadFile(args[3])
	if err != nil {
		return err
	}
	of := bill.Image{Name: name, Version: version, Modules: []*debug.Module{roots}}
	for _, path := range args[4:] {
		b, err := bill.Read(path)
		if err != nil {
			return err
		}
		of.Binaries = append(of.Binaries, b)
	}
	index, err := indexOf(version, at, notices, args[4:], of.Binaries)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if n, err := hex.Decode(of.Digest[:], []byte(digest.Hex)); err != nil || n != sha256.Size {
		return fmt.Errorf("digest %s: %w", digest, err)
	}
	if err := writeArchive(archive, index, version, at); err != nil {
		return err
	}
	return bill.Write(out, bill.OfImage(of), at)
}

// certificatesModule returns the module that the certificates come from.
func certificatesModule() (*debug.Module, error) {
	const path = "golang.org/x/crypto/x509roots/fallback"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m, nil
			}
		}
	}
	return nil, fmt.Errorf("this program was built without the module %s", path)
}
