package diagnostics

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/version"
)

// NewBugReport returns the command bugreport.
func NewBugReport() *cobra.Command {
	var at client.Connection
	var file string
	cmd := &cobra.Command{
		Use:   "bugreport",
		Short: "Collect diagnostics in a tar.gz, without secrets",
		Long: `Write a tar.gz for a bug report: the daemon's status, metrics, goroutines,
recent history, the newest lines of its log and versions, and, with --config,
its configuration. What could not be collected is listed in errors.txt.

Values of Secrets are never included, and what looks like a credential is taken
out. Names of objects, clusters and people are included: look through the file
before you share it.`,
		Example: `  gitfleet bugreport --config gitfleet.yaml`,
		Args:    cobra.NoArgs,
		RunE: at.WithClient(func(cmd *cobra.Command, _ []string, c *client.Client) error {
			now := time.Now()
			if file == "" {
				file = "gitfleet-" + now.UTC().Format("20060102-150405") + ".tar.gz"
			}
			b := &bundle{config: at.Config, redactor: &redactor{}}
			for _, own := range []string{at.TokenFile, at.KeyFile} {
				if text, err := os.ReadFile(own); err == nil {
					b.redactor.add(text)
				}
			}
			b.gather(cmd.Context(), c)
			if err := b.write(file, now); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), file)
			if len(b.errs) > 0 {
				return fmt.Errorf("some parts could not be collected; %s has the others:\n%w", file, errors.Join(b.errs...))
			}
			return nil
		}),
	}
	at.Bind(cmd.Flags())
	cmd.Flags().StringVar(&at.Config, "config", "", "configuration file of the daemon")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write (default gitfleet-TIME.tar.gz)")
	return cmd
}

// A bundle is the content of a bug report.
type bundle struct {
	config   string // name of the file; empty if there is none
	files    []bundled
	errs     []error
	redactor *redactor
}

type bundled struct {
	name string
	text []byte
}

func (b *bundle) add(name string, text []byte, err error) {
	if err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s: %w", name, err))
	}
	if len(text) > 0 {
		b.files = append(b.files, bundled{name, text})
	}
}

// newestEntries is the maximum number of history entries in a bug report.
const newestEntries = "5000"

// gather collects everything. Parts that fail are left out.
func (b *bundle) gather(ctx context.Context, c *client.Client) {
	b.add("versions.txt", fmt.Appendf(nil, "client %s %s/%s\n", version.String(), runtime.GOOS, runtime.GOARCH), nil)
	if b.config != "" {
		text, err := os.ReadFile(b.config)
		if err == nil {
			err = b.redactor.addConfigured(b.config)
		}
		b.add("gitfleet.yaml", text, err)
	}
	for _, f := range []struct{ name, path string }{
		{"report.json", "/report"}, {"metrics.txt", "/metrics"}, {"goroutines.txt", "/debug/goroutines"}, {"history.jsonl", "/history?newest=" + newestEntries},
		{"log.txt", "/debug/log"},
	} {
		text, err := fetch(ctx, c, f.path)
		b.add(f.name, text, err)
	}
}

// fetch requests a text.
func fetch(ctx context.Context, c *client.Client, path string) ([]byte, error) {
	resp, err := c.Do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// write writes the file, which only its owner may read.
func (b *bundle) write(file string, now time.Time) error {
	if len(b.errs) > 0 {
		text := errors.Join(b.errs...).Error() + "\n"
		b.files = append(b.files, bundled{"errors.txt", []byte(text)})
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, f := range b.files {
		text := b.redactor.redact(f.text)
		header := &tar.Header{Name: "gitfleet-bugreport/" + f.name, Mode: 0o600, Size: int64(len(text)), ModTime: now}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_, err = f.Write(out.Bytes())
	return errors.Join(err, f.Close())
}
