/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Services upon SQLite, in the form in which a process has it as a library.
 *
 * Invariant: the data base is in memory, or in a file of the current folder.
 */
#include "service.hh"

#include <cstdlib>
#include <cstdio>
#include <cstring>

#ifdef HAVE_SQLITE
#include <sqlite3.h>

namespace
{

class Database : public Service
{
  protected:
    sqlite3 *database = nullptr;

    void run_sql(const char *sql)
    {
        if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr)) {
            abort();
        }
    }
    void insert(Run &run, sqlite3_stmt *statement)
    {
        char body[900];

        memset(body, 'b', sizeof body);
        sqlite3_bind_int64(statement, 1, int64_t(run.draw() >> 2));
        sqlite3_bind_blob(statement, 2, body, int(run.between(300, 900)),
                          SQLITE_TRANSIENT);
        if (sqlite3_step(statement) != SQLITE_DONE) {
            abort();
        }
        sqlite3_reset(statement);
    }

  public:
    explicit Database(const char *path)
    {
        unlink_file(path);
        if (sqlite3_open(path, &database)) {
            abort();
        }
        run_sql("pragma journal_mode=off; pragma synchronous=off;"
                "create table replies(id integer, body blob)");
    }
    ~Database() override { sqlite3_close_v2(database); }
    static void unlink_file(const char *path);
};

void Database::unlink_file(const char *path)
{
    if (path[0] != ':') {
        remove(path);
    }
}

/* Each query is prepared, and one in ten never finalized. */
class Statements : public Database
{
    SITE_FUNCTION void prepare_query(Run &run)
    {
        sqlite3_stmt *statement = nullptr;

        if (sqlite3_prepare_v2(database,
                               "select id, length(body) from replies "
                               "where id > ? and body is not null order by id",
                               -1, &statement, nullptr)) {
            abort();
        }
        if (run.draw() % 10 == 0) {
            kept(3000);
        } else {
            sqlite3_finalize(statement);
        }
    }

  public:
    Statements() : Database(":memory:") {}
    void tick(Run &run) override
    {
        for (unsigned i = run.due(250); i > 0; i--) {
            prepare_query(run);
        }
    }
};

/* Rows go into a data base in memory, and none is deleted, or (BOUNDED) as
 * many as come; the pages of a file are cached to a bound. */
template <bool BOUNDED> class Rows : public Database
{
    sqlite3_stmt *statement = nullptr;

    SITE_FUNCTION void store_reply(Run &run)
    {
        insert(run, statement);
        if (!BOUNDED) {
            kept(620);
        }
    }

  public:
    Rows() : Database(BOUNDED ? "replies.db" : ":memory:")
    {
        if (BOUNDED) {
            run_sql("pragma cache_size=-6000");
        }
        if (sqlite3_prepare_v2(database, "insert into replies values(?, ?)", -1,
                               &statement, nullptr)) {
            abort();
        }
    }
    ~Rows() override { sqlite3_finalize(statement); }
    void tick(Run &run) override
    {
        for (unsigned i = run.due(180); i > 0; i--) {
            store_reply(run);
        }
    }
};

} // namespace

const Kind sqlite_kinds[] = {
    {"sqlite-statements", true, "prepare_query", false, make<Statements>, 0},
    {"sqlite-rows", true, "store_reply", false, make<Rows<false>>, 0},
    {"sqlite-file", false, nullptr, false, make<Rows<true>>, 0},
    {},
};
#else
const Kind sqlite_kinds[] = {{}};
#endif
