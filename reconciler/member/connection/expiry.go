package connection

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// A validity is how long credentials are valid. Both times are zero if the credentials have no known
// end, as with a token of a Secret, or with a credential plugin, which renews them itself.
type validity struct{ from, until time.Time }

// renewalNotice is the longest time before their end at which credentials count as due for renewal.
const renewalNotice = 14 * 24 * time.Hour

// due is when the credentials should have been renewed: with a tenth of their lifetime left, but not
// earlier than renewalNotice before their end. The tokens that a kubelet renews have a fifth left.
func (v validity) due() time.Time {
	return v.until.Add(-min(renewalNotice, v.until.Sub(v.from)/10))
}

// An Expiry is the end of something that a connection depends on, and when it is due for renewal.
type Expiry struct {
	What       string
	Until, Due time.Time
}

func expiriesOf(certificate []byte, token string, ca []byte) []Expiry {
	var all []Expiry
	for _, found := range []struct {
		what string
		validity
	}{{"client certificate", certificateValidity(certificate)}, {"token", tokenValidity(token)}, {"CA certificate", caValidity(ca)}} {
		if !found.until.IsZero() {
			all = append(all, Expiry{found.what, found.until, found.due()})
		}
	}
	return all
}

// CAExpiry returns the end of the certificates of a CA in PEM data; ok is false if it has none.
func CAExpiry(data []byte) (e Expiry, ok bool) {
	v := caValidity(data)
	return Expiry{"CA certificate", v.until, v.due()}, !v.until.IsZero()
}

// caValidity returns the validity of the certificate that ends last: earlier ones are left in a file while a CA is replaced.
func caValidity(data []byte) (last validity) {
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			return last
		}
		if v := certificateValidity(pem.EncodeToMemory(block)); v.until.After(last.until) {
			last = v
		}
		data = rest
	}
}

// validityOf returns the validity of a client configuration into which the files that it names were
// read. If it has a certificate and a token, that is the validity of the one that ends first.
func validityOf(cfg *rest.Config) validity {
	certificate, token := certificateValidity(cfg.CertData), tokenValidity(cfg.BearerToken)
	if certificate.until.IsZero() || !token.until.IsZero() && token.until.Before(certificate.until) {
		return token
	}
	return certificate
}

// certificateValidity returns the validity of the first certificate in PEM data.
func certificateValidity(data []byte) validity {
	block, _ := pem.Decode(data)
	if block == nil {
		return validity{}
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return validity{}
	}
	return validity{c.NotBefore, c.NotAfter}
}

// tokenValidity returns the validity of a JSON web token, which is not verified.
func tokenValidity(token string) validity {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return validity{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return validity{}
	}
	var claims struct {
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Expires <= 0 {
		return validity{}
	}
	return validity{time.Unix(int64(claims.Issued), 0), time.Unix(int64(claims.Expires), 0)}
}

// setExpiry exports the validity of the credentials of a cluster, or that they have no known end.
func (m *Metrics) setExpiry(cluster string, v validity) {
	if v.until.IsZero() {
		m.Expiry.Delete(cluster)
		m.RenewalDue.Delete(cluster)
		return
	}
	m.Expiry.Set(float64(v.until.Unix()), cluster)
	m.RenewalDue.Set(float64(v.due().Unix()), cluster)
}
