package connection

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/series"
)

func certificate(t *testing.T, from, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func token(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmVk"
}

// The end of a client certificate and of a token is known, and when it should have been renewed;
// credentials that are renewed in time never count as due.
func TestExpiryOfCredentials(t *testing.T) {
	const day = 24 * time.Hour
	began := time.Unix(1_800_000_000, 0)
	after := func(d time.Duration) time.Time { return began.Add(d) }
	for name, test := range map[string]struct {
		cfg        rest.Config
		until, due time.Time
	}{
		"a certificate of a year":   {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate(t, began, after(365*day))}}, after(365 * day), after(351 * day)},
		"a certificate of 30 days":  {rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: certificate(t, began, after(30*day))}}, after(30 * day), after(27 * day)},
		"a token of an hour":        {rest.Config{BearerToken: token(`{"iat":1800000000,"exp":1800003600}`)}, after(time.Hour), after(54 * time.Minute)},
		"a token without its begin": {rest.Config{BearerToken: token(`{"exp":1800003600}`)}, after(time.Hour), after(time.Hour - 14*day)},
		"the one that ends first": {rest.Config{BearerToken: token(`{"iat":1800000000,"exp":1800003600}`), TLSClientConfig: rest.TLSClientConfig{CertData: certificate(t, began, after(30*day))}},
			after(time.Hour), after(54 * time.Minute)},
		"the certificate with a token that has no end": {rest.Config{BearerToken: token(`{"iat":1800000000}`), TLSClientConfig: rest.TLSClientConfig{CertData: certificate(t, began, after(30*day))}}, after(30 * day), after(27 * day)},
		"a token that says nothing":                    {cfg: rest.Config{BearerToken: "opaque"}},
		"a token that only looks like one":             {cfg: rest.Config{BearerToken: "a.b.c"}},
		"no certificate":                               {cfg: rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte("none")}}},
		"a password":                                   {cfg: rest.Config{Username: "admin", Password: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := validityOf(&test.cfg)
			if !v.until.Equal(test.until) || !v.until.IsZero() && !v.due().Equal(test.due) {
				t.Errorf("ends %s and is due %s, want %s and %s", v.until, v.due(), test.until, test.due)
			}
		})
	}
}

// The expiry in the metrics is that of the credentials in use: those that replace others replace it,
// and those without an end remove it.
func TestExpiryIsExported(t *testing.T) {
	m := NewMetrics()
	cfg := Config{Cluster: "east", Timeout: time.Second, Metrics: &m}
	open := func(token string) {
		t.Helper()
		if _, err := New(cfg, &rest.Config{Host: "https://east.example", BearerToken: token}); err != nil {
			t.Fatal(err)
		}
	}
	open(token(`{"iat":1800000000,"exp":1800003600}`))
	open(token(`{"iat":1800003000,"exp":1800006600}`))
	if got, due := m.Expiry.Value("east"), m.RenewalDue.Value("east"); got != 1_800_006_600 || due != 1_800_006_240 {
		t.Errorf("ends %f and is due %f", got, due)
	}
	open("opaque")
	if n := len(series.Gather(nil, m.Expiry, m.RenewalDue)); n != 0 {
		t.Errorf("%d metrics of credentials without an end", n)
	}
}

// Everything with a known end is listed; of the certificates of a CA the one that ends last counts, since earlier ones are left
// while a CA is replaced.
func TestExpiries(t *testing.T) {
	const day = 24 * time.Hour
	began := time.Unix(1_800_000_000, 0)
	old, next := certificate(t, began, began.Add(10*day)), certificate(t, began, began.Add(365*day))
	all := expiriesOf(certificate(t, began, began.Add(30*day)), token(`{"iat":1800000000,"exp":1800003600}`), slices.Concat(old, next))
	want := []struct {
		what       string
		until, due time.Duration
	}{{"client certificate", 30 * day, 27 * day}, {"token", time.Hour, 54 * time.Minute}, {"CA certificate", 365 * day, 351 * day}}
	if len(all) != len(want) {
		t.Fatalf("%+v", all)
	}
	for i, e := range all {
		if e.What != want[i].what || !e.Until.Equal(began.Add(want[i].until)) || !e.Due.Equal(began.Add(want[i].due)) {
			t.Errorf("%+v, want %+v", e, want[i])
		}
	}
	if none := expiriesOf(nil, "opaque", []byte("none")); len(none) != 0 {
		t.Errorf("without an end: %+v", none)
	}
	if _, ok := CAExpiry([]byte("none")); ok {
		t.Error("a file without certificates has an end")
	}
}
