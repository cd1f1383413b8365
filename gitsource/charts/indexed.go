package charts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
)

// An indexed repository has an index.yaml that says where the archives are.
type indexed struct {
	*server
	base *url.URL
}

func newIndexed(cfg Config, address string) (*indexed, error) {
	u, err := hostOf(address)
	if err != nil {
		return nil, err
	}
	s, err := newServer(cfg, u.Host)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	return &indexed{s, u}, s.checkURL(u)
}

// mostIndex limits an index.yaml; the largest public ones have some 20 MiB.
const mostIndex = 64 << 20

// get reads a file of the server, or of another one, for which its own credentials are used.
func (r *indexed) get(ctx context.Context, address *url.URL, most int64, what string) ([]byte, error) {
	s := r.server
	if !strings.EqualFold(address.Host, r.base.Host) {
		var err error
		if s, err = newServer(r.cfg, address.Host); err != nil {
			return nil, err
		}
	}
	if err := s.checkURL(address); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	if s.header != "" {
		req.Header.Set("Authorization", s.header)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, s.mask(err)
	}
	if res.StatusCode != http.StatusOK {
		text, _ := readLimited(res.Body, 4<<10, "") // the status is more important
		return nil, fmt.Errorf("%s: %s: %s", what, res.Status, s.credentials.Text(res.Header.Get("Content-Type"), text, 200))
	}
	return readLimited(res.Body, most, what)
}

func (r *indexed) archive(ctx context.Context, chart lockfile.Chart) ([]byte, error) {
	address, err := hostOf(chart.URL)
	if err != nil {
		return nil, fmt.Errorf("url of the lock file: %w", err)
	}
	return r.get(ctx, address, r.cfg.Limits.ArchiveBytes, "the archive")
}

func (r *indexed) find(ctx context.Context, asked lockfile.Request) (chart lockfile.Chart, packed []byte, err error) {
	text, err := r.get(ctx, r.base.JoinPath("index.yaml"), mostIndex, "index.yaml")
	if err != nil {
		return chart, nil, err
	}
	var index struct {
		Entries map[string][]struct {
			Version, Digest string
			URLs            []string
		}
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return chart, nil, fmt.Errorf("index.yaml is not valid: %w", err)
	}
	entries, known := index.Entries[asked.Name]
	if !known {
		return chart, nil, fmt.Errorf("index.yaml has no chart %s", asked.Name)
	}
	var versions []string
	for _, e := range entries {
		versions = append(versions, e.Version)
	}
	chart = lockfile.Chart{Request: asked}
	if chart.Resolved, err = newest(asked.Version, versions); err != nil {
		return chart, nil, err
	}
	for _, e := range entries {
		if e.Version != chart.Resolved {
			continue
		}
		if len(e.URLs) == 0 {
			return chart, nil, errors.New("index.yaml does not say where the chart is")
		}
		address, err := r.base.Parse(e.URLs[0])
		if err != nil {
			return chart, nil, fmt.Errorf("the url in index.yaml: %w", err)
		}
		chart.URL = address.String()
		if packed, err = r.archive(ctx, chart); err != nil {
			return chart, nil, err
		}
		chart.Digest = digestOf(packed)
		if told := strings.TrimPrefix(e.Digest, "sha256:"); told != "" && "sha256:"+told != chart.Digest {
			return chart, nil, fmt.Errorf("the archive has the digest %s, and index.yaml says %s", chart.Digest, e.Digest)
		}
		break
	}
	return chart, packed, nil
}
