#!/bin/sh
# Creates new certificates for the tests. They are for the tests only: the keys
# are public. The key of the authority is not kept.
#
#   ca            the authority
#   server        localhost, 127.0.0.1, llm.test
#   other-name    other.test only
#   forges        the hosts of github.com, gitlab.com, codeberg.org, gitea.com and git.example.test
#   expired       ended in 2021
#   future        starts in 2120
#   self-signed   as `openssl req -x509` creates it: an authority's certificate
#   self-leaf     self-signed, not an authority (CA:FALSE)
#   self-leaf-again  another one with its key and its subject
#   ca-unsigning  CA:TRUE, but its key must not sign certificates
#   ca-mail       an authority for mail only
#   v1            an authority of version 1, without extensions
#   v1-leaf       of version 1 too, but issued by ca
#   by-NAME       for the names of server, signed by NAME
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
cat >"$work/config" <<END
[ca]
default_ca = tests
[tests]
database = $work/index
new_certs_dir = $work
default_md = sha256
policy = policy
unique_subject = no
rand_serial = yes
[policy]
commonName = supplied
END

# NAME FROM TO EXTENSIONS SIGNER...; uses `openssl ca`, which accepts dates in every version.
# With `again`, the key and the subject are those of that certificate.
again=
certificate() {
    name=$1 from=$2 to=$3 extensions=$4
    shift 4
    : >"$work/index"
    printf '%b\n' "$extensions" >"$work/extensions"
    if [ "$again" ]; then
        cp "$again.key" "$name.key"
    else
        openssl ecparam -name prime256v1 -genkey -noout |
            openssl pkcs8 -topk8 -nocrypt -out "$name.key"
    fi
    openssl req -new -key "$name.key" -subj "/CN=${again:-$name} of the tests" -out "$work/request"
    openssl ca -batch -notext -config "$work/config" -in "$work/request" -extfile "$work/extensions" \
        -startdate "$from" -enddate "$to" -out "$name.pem" "$@"
}

begin=20200101000000Z end=21200101000000Z
names=subjectAltName=DNS:localhost,DNS:llm.test,IP:127.0.0.1
forges=DNS:github.com,DNS:codeload.github.com,DNS:gitlab.com,DNS:codeberg.org,DNS:gitea.com,DNS:git.example.test
leaf=basicConstraints=CA:FALSE\\nextendedKeyUsage=serverAuth\\n

certificate ca $begin $end 'basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign' \
    -selfsign -keyfile ca.key
certificate self-signed $begin $end "basicConstraints=critical,CA:TRUE\\n$names" \
    -selfsign -keyfile self-signed.key
certificate self-leaf $begin $end "$leaf$names" -selfsign -keyfile self-leaf.key
again=self-leaf
certificate self-leaf-again $begin $end "$leaf$names" -selfsign -keyfile self-leaf.key
again=
certificate ca-unsigning $begin $end 'basicConstraints=critical,CA:TRUE\nkeyUsage=digitalSignature' \
    -selfsign -keyfile ca-unsigning.key
certificate ca-mail $begin $end 'basicConstraints=critical,CA:TRUE\nextendedKeyUsage=emailProtection' \
    -selfsign -keyfile ca-mail.key
certificate v1 $begin $end '' -selfsign -keyfile v1.key
certificate v1-leaf $begin $end '' -cert ca.pem -keyfile ca.key
certificate server $begin $end "$leaf$names" -cert ca.pem -keyfile ca.key
certificate other-name $begin $end "${leaf}subjectAltName=DNS:other.test" -cert ca.pem -keyfile ca.key
certificate forges $begin $end "${leaf}subjectAltName=$forges" -cert ca.pem -keyfile ca.key
certificate expired $begin 20210101000000Z "$leaf$names" -cert ca.pem -keyfile ca.key
certificate future $end 21210101000000Z "$leaf$names" -cert ca.pem -keyfile ca.key
for name in other-name ca-unsigning ca-mail v1 v1-leaf; do
    certificate "by-$name" $begin $end "$leaf$names" -cert "$name.pem" -keyfile "$name.key"
done
rm -r "$work" ca.key ca-unsigning.key ca-mail.key v1.key v1-leaf.key
