import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { serviceName } from './service-name.ts'

/** The name for a command line whose first word is the executable. */
function check(command: string, want: string, cwd = '/'): void {
  const args = command.split(' ')
  const executable = args[0]!.startsWith('/') ? args[0]! : `/usr/bin/${args[0]}`
  assert.equal(serviceName({ comm: 'MainThread', executable, args, cwd }).name, want, command)
}

test('a program that is no interpreter is named by its executable', () => {
  check('/usr/sbin/nginx -g daemon off;', 'nginx')
  check('/usr/lib/postgresql/15/bin/postgres -D /var/lib', 'postgres')
  const redis = { comm: 'redis-server', executable: '/usr/bin/redis-check-rdb', cwd: '/' }
  assert.equal(
    serviceName({ ...redis, args: ['/usr/bin/redis-server 127.0.0.1:6379', ''] }).name,
    'redis-server',
  )
  assert.equal(serviceName({ ...redis, args: ['redis-check-rdb', 'dump.rdb'] }).name, 'redis-check-rdb')
  assert.equal(serviceName({ comm: 'gone', executable: '', args: [], cwd: '' }).name, 'gone')
  assert.equal(serviceName({ comm: '', executable: '', args: [], cwd: '' }).name, 'unknown')
})

test('Node programs are named by their script', () => {
  check('node /srv/shop/checkout.js', 'checkout')
  check('node /srv/shop/server.js', 'shop')
  check(
    'node --max-old-space-size=512 -r dotenv/config --import ./otel.mjs /srv/shop/dist/index.js --port 1',
    'shop',
  )
  check('node --env-file .env --title x --cpu-prof-dir /tmp /srv/shop/cart.js', 'cart')
  check('node --title=x --enable-source-maps /srv/shop/cart.js', 'cart')
  check('node --run start', 'node')
  check('node server.js', 'shop', '/srv/shop')
  check('node ./dist/src/main.js', 'shop', '/srv/shop')
  check('node ../cart/index.mjs', 'cart', '/srv/shop')
  check('node /app/server.js', 'server')
  check('node /srv/api.ts', 'api')
  check('node .', 'shop', '/srv/shop')
  check('node -e setInterval(()=>{},1000)', 'node')
  check('node', 'node')
  check('bun run /srv/shop/api.ts', 'api')
  check('deno run --allow-net /srv/shop/main.ts', 'shop')
})

test('Python programs are named by module, script or served application', () => {
  check('python3 -m http.server 8000', 'http.server')
  check('python3.11 /srv/shop/manage.py runserver', 'shop')
  check('python3 -u -X dev -W ignore /srv/shop/billing.py', 'billing')
  check('python3 /usr/bin/gunicorn -w 4 shop.wsgi:application', 'shop')
  check('python3 -m uvicorn main:app --port 80', 'cart', '/srv/cart')
  check('python3 /usr/bin/gunicorn -c conf.py', 'gunicorn')
  check('python3 -c pass', 'python3')
  check('python3.11', 'python3')
})

test('Java programs are named by property, archive or class', () => {
  check('java -Xmx1g -jar /opt/shop-1.4.2-SNAPSHOT.jar --server.port=1', 'shop')
  check('java -jar cart-service.jar', 'cart-service')
  check('java -Dspring.application.name=pay -jar x.jar', 'pay')
  check('java -Dotel.service.name=pay -jar x.jar', 'pay')
  check('java -cp a.jar:b.jar com.example.billing.Main', 'billing')
  check('java -cp a.jar kafka.Kafka server.properties', 'Kafka')
  check('java -classpath a.jar org.apache.catalina.startup.Bootstrap start', 'catalina')
  check('java -p mods -m shop/com.example.Shop', 'Shop')
})

test('a file that is many programs is the one that it is called by', () => {
  const of = (...args: string[]) =>
    serviceName({ comm: 'x', executable: '/bin/busybox', args, cwd: '/' }).name
  assert.equal(of('httpd', '-f'), 'httpd')
  assert.equal(of('/bin/nc', '-l'), 'nc')
  assert.equal(of('busybox', 'httpd', '-f'), 'httpd')
  assert.equal(of('-sh'), 'sh')
  assert.equal(of('busybox', '--help'), 'busybox')
  assert.equal(of(), 'busybox')
})

test('a name that was given for OpenTelemetry is told apart from those that were found', () => {
  const given = (executable: string, ...args: string[]) =>
    serviceName({ comm: 'x', executable, args: ['x', ...args], cwd: '/' }).given
  assert.equal(
    given('/usr/bin/java', '-Dspring.application.name=a', '-Dotel.service.name=b', '-jar', 'c.jar'),
    true,
  )
  assert.equal(given('/usr/bin/java', '-Dspring.application.name=a', '-jar', 'c.jar'), false)
  assert.equal(given('/usr/bin/java', '-Dotel.service.name=', '-jar', 'c.jar'), false)
  assert.equal(given('/usr/bin/node', '-Dotel.service.name=b'), false)
})

test('Ruby, PHP, .NET, Erlang and Perl programs are named by what they run', () => {
  check('ruby /srv/shop/bin/rails server', 'shop')
  check('ruby -I lib -r json /srv/shop/api.rb', 'api')
  check('php /srv/shop/artisan serve', 'shop')
  check('php -S 0.0.0.0:80 -t public router.php', 'router')
  check('/usr/sbin/php-fpm8.2 --nodaemonize', 'php-fpm')
  check('dotnet /srv/Shop.Api.dll', 'Shop.Api')
  check('dotnet exec --depsfile a.json /srv/Shop.dll', 'Shop')
  check('/usr/lib/erlang/erts-13/bin/beam.smp -W w -sname rabbit@host -noshell', 'rabbit')
  check('perl -I /lib /srv/mail.pl', 'mail')
})

test('a title that the program gave itself counts where nothing better is there', () => {
  const title = (executable: string, text: string) =>
    serviceName({ comm: 'x', executable, args: [text], cwd: '/' }).name
  assert.equal(title('/usr/bin/ruby3.1', 'puma 6.4.0 (tcp://0.0.0.0:9292) [shop]'), 'puma')
  assert.equal(title('/usr/bin/node', 'npm start'), 'npm')
})

test('language and runtime are told where they are known', () => {
  const of = (executable: string) => {
    const { runtime, language } = serviceName({ comm: '', executable, args: [], cwd: '' })
    return [runtime, language]
  }
  assert.deepEqual(of('/usr/bin/node'), ['nodejs', 'nodejs'])
  assert.deepEqual(of('/usr/bin/python3.11'), ['cpython', 'python'])
  assert.deepEqual(of('/usr/lib/jvm/java-17/bin/java'), ['', 'java'])
  assert.deepEqual(of('/usr/sbin/nginx'), ['', ''])
})

test('no command line is without a name', () => {
  const program = fc.constantFrom(
    '/usr/bin/node',
    '/usr/bin/python3',
    '/usr/bin/java',
    '/usr/bin/php',
    '/x',
    '',
  )
  const args = fc.array(
    fc.oneof(fc.string(), fc.constantFrom('-m', '-jar', '-cp', '--', '-e', '.', '..', '/', 'a/..')),
  )
  fc.assert(
    fc.property(program, args, fc.string(), (executable, args, cwd) => {
      assert.notEqual(serviceName({ comm: 'c', executable, args: ['x', ...args], cwd }).name, '')
    }),
  )
})
