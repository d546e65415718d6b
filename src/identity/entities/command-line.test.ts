import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { commandLine } from './command-line.ts'

const runs = soak ? 20_000 : 500

test('values that something announces as secret are not shown', () => {
  for (const line of [
    'app --password=SECRET',
    'app --password SECRET',
    'app -password SECRET -v',
    'app --db-passwd=SECRET --port=1',
    'app --api-key SECRET',
    'app --apikey=SECRET',
    'app --client_secret=SECRET',
    'env PGPASSWORD=SECRET psql',
    'java -Ddb.password=SECRET -jar x.jar',
    'java -Djavax.net.ssl.keyStorePassword=SECRET -jar x.jar',
    'curl -u me:SECRET http://x/',
    'curl --user me:SECRET http://x/',
    'curl http://me:SECRET@x/y',
    'curl -H Authorization:SECRET http://x/',
    'curl http://x/?page=1&access_token=SECRET&y=2',
    'psql postgres://shop:SECRET@db/shop',
    'mysql -uroot -pSECRET',
    'app --dsn=SECRET',
    'app {"password":"SECRET"}',
    'docker login --password SECRET',
    'app Bearer SECRET',
    'redis-cli --auth SECRET',
    'app --token=SECRET --token SECRET',
    'helm install x --set=auth.password=SECRET,size=3',
    'kubectl create secret --from-literal=password=SECRET',
    'docker run --env=DB_PASSWORD=SECRET== shop',
    'app --url=http://x/?a=b&token=SECRET',
    'sshpass -p SECRET ssh host',
    'sshpass -pSECRET ssh host',
    '/usr/bin/sudo -u me sshpass -p SECRET ssh host',
    'redis-cli -h db -a SECRET ping',
    'docker exec cache redis-cli -a SECRET ping',
    'app --pw=SECRET',
    'app --pw SECRET',
    'app --pw1 SECRET',
    'app --password2=SECRET',
    'plink -pw SECRET host',
    'mysqldump -h db -pSECRET shop',
    'mariadb -pSECRET',
    'curl -ume:SECRET http://x/',
    'smbclient -U me%SECRET //x/y',
    'docker login -u me -p SECRET registry',
    'docker run -e PASS=SECRET shop',
    'docker run -e DB_PW=SECRET shop',
    'openssl rsa -passin pass:SECRET -in x.pem',
    'openssl rsa -passin SECRET -in x.pem',
    'openssl enc -aes-256-cbc -k SECRET',
    'mongosh -u me -p SECRET db',
    'sqlcmd -S db -P SECRET',
    'ldapsearch -x -D cn=me -w SECRET',
    'ipmitool -H x -U me -P SECRET power status',
    'mosquitto_pub -u me -P SECRET -t a',
    'zip -P SECRET x.zip y',
    '7z x -pSECRET x.7z',
    'sqlplus scott/SECRET@db',
    'nmcli device wifi connect home password SECRET',
  ]) {
    const shown = commandLine(line.split(' '))
    assert.ok(!shown.includes('SECRET'), shown)
    assert.ok(shown.includes('[REDACTED]'), shown)
    // A title that a program wrote over its arguments.
    assert.ok(!commandLine([line]).includes('SECRET'), line)
  }
  const header = ['curl', '-H', 'Authorization: Bearer SECRET', '-H', 'X-Api-Key: SECRET']
  assert.ok(!commandLine(header).includes('SECRET'), commandLine(header))
})

test('tokens of well-known kinds are hidden wherever they stand', () => {
  // Put together here, so that nobody who looks for secrets in this repository finds these.
  for (const kept of [
    ['ghp', 'x'.repeat(36)].join('_'),
    ['glpat', 'x'.repeat(20)].join('-'),
    ['xoxb', '123456789012', 'abc'].join('-'),
    ['sk', 'live', 'x'.repeat(24)].join('_'),
    ['AKIA', 'X'.repeat(16)].join(''),
    ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxIn0', 'c2lnbmF0dXJl'].join('.'),
  ])
    for (const line of [
      `app ${kept}`,
      `app push=${kept},b`,
      `sh -c 'app ${kept}'`,
      `git clone http://${kept}@host/x`,
    ]) {
      const shown = commandLine(line.split(' '))
      assert.ok(!shown.includes(kept) && shown.includes('[REDACTED]'), shown)
      assert.ok(!commandLine([line]).includes(kept), line)
    }
  for (const line of ['app ghp_short', 'app MAKIAXXXX', 'app eyJ.eyJ', 'npm run npm_x'])
    assert.equal(commandLine(line.split(' ')), line)
})

test('a command that is handed to a shell is looked into', () => {
  for (const script of [
    'sshpass -p SECRET ssh host',
    "sshpass -p 'SECRET with SECRET' ssh host",
    'cd /x && PGPASSWORD="SECRET and SECRET" psql -h db',
    'mysql -uroot -pSECRET; true',
    'curl -u me:SECRET http://x/ | redis-cli -a SECRET',
    'app --token "SECRET" --port 1',
  ]) {
    const shown = commandLine(['sh', '-c', script])
    assert.ok(!shown.includes('SECRET') && shown.includes('[REDACTED]'), shown)
  }
})

test('what is no secret is shown as it is', () => {
  for (const line of [
    'nginx: worker process',
    'node /srv/shop/server.js --port=8080 --key-file /etc/key.pem',
    'java -Xmx1g -Dserver.port=1 -jar /opt/shop.jar',
    'python3 -m http.server 8000',
    'sshd: root@pts/0',
    'curl http://x/?page=1&size=2',
    'helm install x --set=a.b=c,size=3',
    'app --set=a= x?token=&b=c',
    'docker run -p 80:80 -v /a:/b nginx',
    'ssh -p 2222 -A host',
    'redis-server *:6379',
    'postgres: shop shop 10.0.0.1(5432) idle',
    'mysql -u root -h db',
    'zip -r x.zip y',
    'passwd root',
    'tar -p -xf x.tar',
  ])
    assert.equal(commandLine(line.split(' ')), line)
})

test('a line has a bound and no control characters, whatever the arguments are', () => {
  assert.equal(commandLine([]), '')
  assert.equal(commandLine(['a\nb\u001b[31m', 'c']), 'a?b?[31m c')
  assert.equal(commandLine(['gpj\u202e\u2066exe\u2028', 'c']), 'gpj??exe? c')
  assert.equal(commandLine(['x'.repeat(1_000_000), 'y']).length, 1_024)
  assert.equal(commandLine(new Array<string>(100_000).fill('ab')).length <= 1_024, true)
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom('--password', '=', 'http://a:b@', 'token=', '"key":"', '-u'),
  )
  fc.assert(
    fc.property(fc.array(fc.array(word).map(words => words.join(''))), args => {
      const line = commandLine(args)
      assert.ok(line.length <= 1_024 && !/[\p{Cc}\p{Bidi_Control}]/u.test(line))
    }),
    { numRuns: runs },
  )
})
