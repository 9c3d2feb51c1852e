golang-1.27-go 1.27.3-1 amd64 pool/main/g/golang-1.27/golang-1.27-go_1.27.3-1_amd64.deb 22596968 0f1ab6483c3db98118aa1faf0365c368b5c07f2e449d8d8f3eba432004b5eee2
golang-1.27-src 1.27.3-1 all pool/main/g/golang-1.27/golang-1.27-src_1.27.3-1_all.deb 25159500 a0a57e5e8c815b6deddaf007156594ccb3d8d08c9627303f4ae95eb9a9cba2c7
