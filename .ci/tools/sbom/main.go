// Command sbom writes the software bill of materials of a Go binary, as CycloneDX JSON: the
// modules that are compiled into it, from its build information, and the standard library.
//
//	sbom BINARY VERSION UNIXTIME > bom.json
//
// The same binary, version and time give the same bytes.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/gitfleet/gitfleet/.ci/tools/bill"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("write sbom BINARY VERSION UNIXTIME")
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	binary, err := bill.Read(args[0])
	if err != nil {
		return err
	}
	return bill.Write(out, bill.OfBinary(binary, args[1]), time.Unix(seconds, 0))
}
